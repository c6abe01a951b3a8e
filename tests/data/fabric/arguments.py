    # Devices arguments
    parser.add_argument('--devices', type=int, default=4, help='number of devices to use')
    parser.add_argument('--tpu', type=bool, default=False,help='If use TPU')
    # Data arguments
    parser.add_argument('--train_data_dir', type=str, default='/data/tokenized_datasets_miquel_TTL',
    help='path to training and validation datasets')
    # Model arguments
    parser.add_argument('--model_name', type=str, default='meta-llama/Meta-Llama-3-8B', help='name of the model')
    parser.add_argument('--precision', type=str, default='bf16-true', help='Precision for the loaded model')
    # FSDP arguments
    parser.add_argument('--auto_wrap_policy', type=torch.nn, default=LlamaDecoderLayer,
    help='Minimum sharding piece of the model with FSDP')
    parser.add_argument('--sharding_strategy', type=str, default='FULL_SHARD', help='Sharding strategy to use')
    parser.add_argument('--state_dict_type', type=str, default='full', help='State dict type to save')
    parser.add_argument('--limit_all_gathers', type=bool, default=True, help='Limit all gathers')
    parser.add_argument('--cpu_offload', type=bool, default=False, help='Tensor ofload to CPU during training')
    # Checkpoint arguments
    parser.add_argument('--resume', type=bool, default=False, help='If resume load from checkpoint')
    parser.add_argument('--checkpoint', type=str, default=None, help='checkpoint route for resume')
    #Training arguments
    parser.add_argument('--number_epochs', type=int, default=2, help='number of epochs to train')
    parser.add_argument('--micro_batch_size', type=int, default=1, help='size of each data batch')
    parser.add_argument('--gradient_accumulation_steps', type=int, default=64,
    help='number of gradient accumulation steps')
    parser.add_argument('--grad_clip', type=int, default=1.0, help='gradient clipping')
    parser.add_argument('--max_step', type=int, default=6145, help='number of gradients accumulations performed')
    parser.add_argument('--lr', type=int, default=2e-5, help='learning rate for the entire model')
    parser.add_argument('--min_lr', type=int, default=2e-5)
    parser.add_argument('--lr_decay', type=bool, default=True, help='If the learning rate decay')
    parser.add_argument('--warmup_steps', type=int, default=0, help='Number of initial steps for warmup')
    parser.add_argument('--weight_decay', type=int, default=0.01, help='weight decay', default=0.01)
    parser.add_argument('--beta1', type=int, default=0.9, help='beta1 for adam')
    parser.add_argument('--beta2', type=int, default=0.95, help='beta2 for adam')
    # Evaluation arguments
    parser.add_argument('--eval_batch_size', type=int, default=1, help='size of each data batch')
    parser.add_argument('--eval_iters', type=int, default=1000000, help='number of iterations to evaluate')
    parser.add_argument('--eval_step_interval', type=int, default=500, help='number of iterations to evaluate')
    # Save Arguments
    parser.add_argument('--save_step_interval', type=int, default=1000, help='number of iterations to save')
    #wandb arguments
    parser.add_argument('--entity', type=str, default='gplsi_continual', help='wandb organization entity')
    parser.add_argument('--project', type=str, default='fabric_llama', help='wandb project name')  
    args = parser.parse_args('--log_model', type=str, default='all', help='log model')
