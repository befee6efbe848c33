// The memory and the cores that this process may use.
#pragma once

namespace attnbench {

// Bytes of memory this process could still get: available memory of the machine, or the control group's if less.
double available_memory();
// All that this process could have were nothing else running: of the machine, or the control group's if less.
double total_memory();

// Cores that this process may run on: its affinity, and no more than Slurm grants a task (SLURM_CPUS_PER_TASK).
int allowed_cores();

}  // namespace attnbench
