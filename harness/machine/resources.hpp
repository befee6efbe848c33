// The memory and the cores that this process may use.
#pragma once

namespace attnbench {

// Bytes that this process could still get: the machine's available memory, or the control group's if less.
double available_memory();
// Bytes that this process could have if nothing else ran: the machine's memory, or the control group's if less.
double total_memory();

// Cores that this process may run on: its affinity, limited by what Slurm grants a task (SLURM_CPUS_PER_TASK).
int allowed_cores();

}  // namespace attnbench
