// Package fit decides whether a request fits the free resources of one host, and on
// exactly which GPUs, MIG instances, CPUs, memory and huge pages, and with which amounts
// of counted resources (ephemeral storage, pods, declared names). The agent
// runs it for the verdict and the coordinator for advice: on equal inputs the
// two cannot disagree. From a summary alone (Host.FreeOf) the advice is never
// more optimistic than the verdict.
//
// It does not decide whether the request may run (coordinator/quota does),
// which host to prefer (coordinator/place does) or which grant owns a device (the agent's
// ledger does). It has no clock, goroutine, log or I/O, and no result depends
// on map order or on floats.
//
// # GPUs
//
// Among all sets of the asked number of free devices that satisfy model,
// memory, link requirement and NUMA policy, the best is chosen by, in order:
//
//  1. the best weakest link between two members (devices.Link compares as a
//     number), then the greatest sum over all pairs, in which a link counts ten
//     for each NVLink and one (SYS) to five (PIX) for its PCIe relation: a tenth
//     of the pair score of NVIDIA's go-gpuallocator;
//  2. the fewest NUMA nodes that hold the devices and have the CPUs and memory
//     asked for (not looked at under the policy none);
//  3. the least harm: the greatest sum of the links that remain among the free
//     devices, then the most pairs of them on one NUMA node, so that islands
//     and nodes already broken are consumed first. A share goes
//     to a partly used device before a fresh one, and there to the tightest;
//  4. the lowest indices, compared as ascending lists.
//
// On hosts of up to 16 devices this choice is exact. On larger hosts (up to
// 64) a set is grown greedily from every free device as seed, always by the
// device with the best weakest link to the set, and the best of these sets is
// taken by the same order; where a NUMA policy limits the nodes, this is
// repeated within each allowed set of nodes. That is exact where links form
// nested islands, as on all known large hosts.
//
// A device whose NUMA node is not known, or is no ordinary node of the
// topology, counts as aligned with every node. Devices in MIG mode are not
// handed out whole or in shares.
//
// # MIG instances
//
// Each instance is a slot of its own, held whole. Among all sets of the asked
// number of free instances of the profile, on healthy devices of the model and
// with the memory asked for, the best is chosen by, in order:
//
//  1. the fewest NUMA nodes, as for GPUs;
//  2. the fewest devices broken that were wholly free, so that partly used ones
//     are filled first;
//  3. the fewest devices touched;
//  4. the fewest GPU slices free on these, of any profile: the tightest devices;
//  5. the lowest devices, each filled before the next, and there the lowest
//     instances.
//
// On hosts of up to 16 devices this choice is exact. On larger ones the devices
// are gathered greedily in the same order, over the whole host, on each node
// and, under a policy that limits the nodes, within each allowed set of them:
// where there is a choice one is found, which need not be the best.
//
// # CPUs and memory
//
// The NUMA nodes are the fewest that include the devices' nodes and have the
// CPUs, whole cores, memory and huge pages; among equally few, those with
// enough whole CPUs, then the nearest to each other, then (for requests without
// devices) those with the fewest devices that have room, then the tightest,
// then the lowest. The devices' nodes give their CPUs before the others.
// Ordinary memory and huge pages are each on one node where one has it all,
// else on those with the most free.
//
// A request of c millicores takes c/1000 whole CPUs: whole physical cores
// first, together in the tightest L3 group that holds them, odd ones on cores
// already split. The remainder goes to the tightest partly used CPU, else to a
// fresh one; it is spread over several only where no single CPU can take it.
// So no request is refused for CPU while the millicores free on the allowed
// nodes suffice.
//
// A request of whole cores takes intact ones with all their online threads: a
// core with a thread that is reserved, isolated or in use, even in part, is not
// intact. They are in the tightest L3 group of a node that holds them all, else
// in the largest groups first, so that the groups are few. On hybrid processors
// one request mixes kinds only where no kind alone has enough on the chosen
// nodes; performance cores come before those of unknown kind, efficiency and
// low-power cores.
//
// Pools of huge pages are no ordinary memory: a node offers as such its memory
// without its pools. Memory-only nodes offer neither.
//
// Up to 16 ordinary NUMA nodes the choice of nodes is exact; beyond, sets of
// more than two nodes are found greedily and the policy restricted refuses
// nothing that needs more than two nodes.
package fit
