#!/bin/bash
# shellcheck disable=SC1091
# What the targets for people say when they are asked for what is not there.
. "$(dirname "$0")/../tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

check "make fuzz without T names what there is" fails 2 "make fuzz: T=NAME must be one of arrow columns idx" make fuzz
check "make fuzz with another name, too" fails 2 "make fuzz: T=NAME must be one of arrow columns idx" make fuzz T=nosuch
check "a filter that meets no test says so" fails 1 'no test has "nosuch" in its name' tests/run.sh nosuch debug
tap_done
