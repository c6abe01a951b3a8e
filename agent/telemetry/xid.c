#include "agent/telemetry/xid.h"

#include <assert.h>
#include <stddef.h>

/* Mnemonics and actions of NVIDIA's catalog ("Analyzing Xid Errors with the Xid Catalog", column
 * "Resolution Bucket (Immediate Action)", for Ampere and newer). It has more buckets than we tell
 * apart: 54 is CHECK_MECHANICALS, 151 RESTART_VM; 48 and 74 are workflows whose text asks for a
 * reset; 45, 144 to 150 and 154 depend on what comes beside them. Numbers that the catalog has no
 * action for are left out. */
static const struct xid rows[] = {
    {8, "ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT", "a channel makes no progress", XID_RESTART_APP},
    {11, "ROBUST_CHANNEL_GR_ERROR_MISSING_HW", "commands that the GPU cannot execute",
     XID_RESTART_APP},
    {13, "ROBUST_CHANNEL_GR_EXCEPTION", "graphics engine exception", XID_RESTART_APP},
    {14, "ROBUST_CHANNEL_FAKE_ERROR", "an error that a test injected", XID_IGNORE},
    {25, "ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY", "illegal commands", XID_RESTART_APP},
    {31, "ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT", "GPU memory page fault", XID_RESTART_APP},
    {32, "ROBUST_CHANNEL_PBDMA_ERROR", "damaged commands, maybe on their way over PCIe",
     XID_RESTART_APP},
    {37, "ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD",
     "the firmware was asked for what it does not have", XID_IGNORE},
    {38, "ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT", "watchdog of the context switch firmware",
     XID_IGNORE},
    {39, "ROBUST_CHANNEL_CE0_ERROR", "copy engine 0 failed", XID_RESTART_APP},
    {40, "ROBUST_CHANNEL_CE1_ERROR", "copy engine 1 failed", XID_RESTART_APP},
    {41, "ROBUST_CHANNEL_CE2_ERROR", "copy engine 2 failed", XID_RESTART_APP},
    {43, "ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR", "GPU stopped processing", XID_IGNORE},
    {44, "ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW", "graphics engine fault in a context switch",
     XID_IGNORE},
    {45, "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL", "preemptive cleanup", XID_FOLLOW},
    {46, "ROBUST_CHANNEL_GPU_TIMEOUT_ERROR", "the GPU does not finish its work", XID_RESET_GPU},
    {48, "ROBUST_CHANNEL_GPU_ECC_DBE", "double bit ECC error", XID_RESET_GPU},
    {54, "SILENT_RUNNING_PWR_REDUCED_CLOCKING", "the board lacks its auxiliary power cable",
     XID_CONTACT_SUPPORT},
    {60, "ROBUST_CHANNEL_SEC2_ERROR", "video processor exception", XID_RESTART_APP},
    {62, "PMU_HALT_ERROR", "internal micro-controller halt", XID_RESET_GPU},
    {63, "INFOROM_DRAM_RETIREMENT_EVENT", "row remapping recorded", XID_IGNORE},
    {64, "INFOROM_DRAM_RETIREMENT_FAILURE", "row remapping failed", XID_RESET_GPU},
    {66, "ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION",
     "the driver touched a register that it may not", XID_IGNORE},
    {67, "ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION", "the driver failed a check of its access",
     XID_IGNORE},
    {68, "ROBUST_CHANNEL_NVDEC0_ERROR", "video decoder 0 failed", XID_RESTART_APP},
    {69, "ROBUST_CHANNEL_GR_CLASS_ERROR", "commands for another class of engine", XID_RESTART_APP},
    {70, "ROBUST_CHANNEL_CE3_ERROR", "copy engine 3 failed", XID_RESTART_APP},
    {71, "ROBUST_CHANNEL_CE4_ERROR", "copy engine 4 failed", XID_RESTART_APP},
    {72, "ROBUST_CHANNEL_CE5_ERROR", "copy engine 5 failed", XID_RESTART_APP},
    {74, "NVLINK_ERROR", "NVLink error", XID_RESET_GPU},
    {75, "ROBUST_CHANNEL_CE6_ERROR", "copy engine 6 failed", XID_RESTART_APP},
    {76, "ROBUST_CHANNEL_CE7_ERROR", "copy engine 7 failed", XID_RESTART_APP},
    {77, "ROBUST_CHANNEL_CE8_ERROR", "copy engine 8 failed", XID_RESTART_APP},
    {79, "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "GPU has fallen off the bus",
     XID_RESTART_MACHINE},
    {80, "PBDMA_PUSHBUFFER_CRC_MISMATCH", "commands came with a wrong checksum", XID_RESTART_APP},
    {82, "ROBUST_CHANNEL_NVJPG0_ERROR", "JPEG decoder 0 failed", XID_RESTART_APP},
    {83, "ROBUST_CHANNEL_NVDEC1_ERROR", "video decoder 1 failed", XID_RESTART_APP},
    {84, "ROBUST_CHANNEL_NVDEC2_ERROR", "video decoder 2 failed", XID_RESTART_APP},
    {85, "ROBUST_CHANNEL_CE9_ERROR", "copy engine 9 failed", XID_RESTART_APP},
    {86, "ROBUST_CHANNEL_OFA0_ERROR", "optical flow engine 0 failed", XID_RESTART_APP},
    {88, "ROBUST_CHANNEL_NVDEC3_ERROR", "video decoder 3 failed", XID_RESTART_APP},
    {89, "ROBUST_CHANNEL_NVDEC4_ERROR", "video decoder 4 failed", XID_RESTART_APP},
    {92, "EXCESSIVE_SBE_INTERRUPTS", "high single-bit ECC error rate", XID_IGNORE},
    {93, "INFOROM_ERASE_LIMIT_EXCEEDED", "the InfoROM has reached its write limit", XID_IGNORE},
    {94, "ROBUST_CHANNEL_CONTAINED_ERROR", "contained ECC error", XID_RESTART_APP},
    {95, "ROBUST_CHANNEL_UNCONTAINED_ERROR", "uncontained ECC error", XID_RESET_GPU},
    {96, "ROBUST_CHANNEL_NVDEC5_ERROR", "video decoder 5 failed", XID_RESTART_APP},
    {97, "ROBUST_CHANNEL_NVDEC6_ERROR", "video decoder 6 failed", XID_RESTART_APP},
    {98, "ROBUST_CHANNEL_NVDEC7_ERROR", "video decoder 7 failed", XID_RESTART_APP},
    {99, "ROBUST_CHANNEL_NVJPG1_ERROR", "JPEG decoder 1 failed", XID_RESTART_APP},
    {100, "ROBUST_CHANNEL_NVJPG2_ERROR", "JPEG decoder 2 failed", XID_RESTART_APP},
    {101, "ROBUST_CHANNEL_NVJPG3_ERROR", "JPEG decoder 3 failed", XID_RESTART_APP},
    {102, "ROBUST_CHANNEL_NVJPG4_ERROR", "JPEG decoder 4 failed", XID_RESTART_APP},
    {103, "ROBUST_CHANNEL_NVJPG5_ERROR", "JPEG decoder 5 failed", XID_RESTART_APP},
    {104, "ROBUST_CHANNEL_NVJPG6_ERROR", "JPEG decoder 6 failed", XID_RESTART_APP},
    {105, "ROBUST_CHANNEL_NVJPG7_ERROR", "JPEG decoder 7 failed", XID_RESTART_APP},
    {106, "SMBPBI_TEST_MESSAGE", "a test message", XID_IGNORE},
    {107, "SMBPBI_TEST_MESSAGE_SILENT", "a test message", XID_IGNORE},
    {109, "ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR", "a context switch took too long", XID_RESET_GPU},
    {110, "SEC_FAULT_ERROR", "security fault", XID_RESET_GPU},
    {119, "GSP_RPC_TIMEOUT", "GSP RPC timeout", XID_RESET_GPU},
    {120, "GSP_ERROR", "GSP error", XID_RESET_GPU},
    {121, "C2C_ERROR", "corrected errors on the link to the CPU", XID_IGNORE},
    {126, "ROBUST_CHANNEL_CE10_ERROR", "copy engine 10 failed", XID_RESTART_APP},
    {127, "ROBUST_CHANNEL_CE11_ERROR", "copy engine 11 failed", XID_RESTART_APP},
    {128, "ROBUST_CHANNEL_CE12_ERROR", "copy engine 12 failed", XID_RESTART_APP},
    {129, "ROBUST_CHANNEL_CE13_ERROR", "copy engine 13 failed", XID_RESTART_APP},
    {130, "ROBUST_CHANNEL_CE14_ERROR", "copy engine 14 failed", XID_RESTART_APP},
    {131, "ROBUST_CHANNEL_CE15_ERROR", "copy engine 15 failed", XID_RESTART_APP},
    {132, "ROBUST_CHANNEL_CE16_ERROR", "copy engine 16 failed", XID_RESTART_APP},
    {133, "ROBUST_CHANNEL_CE17_ERROR", "copy engine 17 failed", XID_RESTART_APP},
    {134, "ROBUST_CHANNEL_CE18_ERROR", "copy engine 18 failed", XID_RESTART_APP},
    {135, "ROBUST_CHANNEL_CE19_ERROR", "copy engine 19 failed", XID_RESTART_APP},
    {136, "ALI_TRAINING_FAIL", "an NVLink did not come up", XID_RESET_GPU},
    {137, "NVLINK_PRIV_ERR", "illegal access to a peer over NVLink", XID_IGNORE},
    {139, "ROBUST_CHANNEL_OFA1_ERROR", "optical flow engine 1 failed", XID_RESTART_APP},
    {140, "UNRECOVERABLE_ECC_ERROR_ESCAPE", "ECC error whose memory could not be taken out of use",
     XID_RESET_GPU},
    {141, "ROBUST_CHANNEL_FAST_PATH_ERROR", "CUDA fast path error", XID_IGNORE},
    {142, "ROBUST_CHANNEL_NVENC3_ERROR", "video encoder 3 failed", XID_CONTACT_SUPPORT},
    {143, "GPU_INIT_ERROR", "the GPU does not start", XID_RESET_GPU},
    {144, "NVLINK_SAW_ERROR", "NVLink error in unit SAW", XID_FOLLOW},
    {145, "NVLINK_RLW_ERROR", "NVLink error in unit RLW", XID_FOLLOW},
    {146, "NVLINK_TLW_ERROR", "NVLink error in unit TLW", XID_FOLLOW},
    {147, "NVLINK_TREX_ERROR", "NVLink error in unit TREX", XID_FOLLOW},
    {148, "NVLINK_NVLPW_CTRL_ERROR", "NVLink error in unit NVLPW_CTRL", XID_FOLLOW},
    {149, "NVLINK_NETIR_ERROR", "NVLink error in unit NETIR", XID_FOLLOW},
    {150, "NVLINK_MSE_ERROR", "NVLink error in unit MSE", XID_FOLLOW},
    {151, "ROBUST_CHANNEL_KEY_ROTATION_ERROR", "encryption keys were not renewed",
     XID_RESTART_MACHINE},
    {152, "ROBUST_CHANNEL_DLA_SMMU_ERROR", "memory fault of the deep learning accelerator",
     XID_IGNORE},
    {153, "ROBUST_CHANNEL_DLA_TIMEOUT", "timeout of the deep learning accelerator", XID_IGNORE},
    {154, "GPU_RECOVERY_ACTION_CHANGED", "the driver tells how the GPU recovers from another error",
     XID_FOLLOW},
    {155, "NVLINK_SW_DEFINED_ERROR", "an NVLink went down", XID_RESET_GPU},
    {156, "RESOURCE_RETIREMENT_EVENT", "a faulty unit will be taken out of use", XID_RESET_GPU},
    {157, "RESOURCE_RETIREMENT_FAILURE", "no spare is left for a faulty unit", XID_IGNORE},
    {158, "GPU_FATAL_TIMEOUT", "fatal timeout", XID_RESET_GPU},
    {160, "CHANNEL_RETIREMENT_EVENT", "a faulty memory channel will be taken out of use",
     XID_IGNORE},
    {161, "CHANNEL_RETIREMENT_FAILURE", "a faulty memory channel stays in use", XID_IGNORE},
    {171, "UNCORRECTABLE_DRAM_ERROR", "details of an Xid 48: in device memory", XID_FOLLOW},
    {172, "UNCORRECTABLE_SRAM_ERROR", "details of an Xid 48: within the chip", XID_FOLLOW},
};

const struct xid *xid_at(int i)
{
    int count = (int)(sizeof rows / sizeof rows[0]);
    return i >= 0 && i < count ? &rows[i] : NULL;
}

const struct xid *xid_find(uint64_t number)
{
    const struct xid *row;
    for (int i = 0; (row = xid_at(i)); i++)
        if (row->number == number)
            return row;
    return NULL;
}

bool xid_is_hardware(enum xid_action action)
{
    return action >= XID_RESET_GPU && action <= XID_CONTACT_SUPPORT;
}

const char *xid_action_text(enum xid_action action)
{
    static const char *const texts[XID_ACTIONS] = {
        [XID_IGNORE] = "the GPU needs no action",
        [XID_RESTART_APP] = "restart the application",
        [XID_RESET_GPU] = "reset the GPU before it is used again",
        [XID_RESTART_MACHINE] = "restart the machine",
        [XID_CONTACT_SUPPORT] = "have the machine checked, contact support",
        [XID_FOLLOW] = "another Xid or a subcode in the node's kernel log says what to do",
    };
    assert((unsigned)action < XID_ACTIONS);
    return texts[action];
}
