// Package simulate replays the arrival of work on a list of nodes by the code that
// places in production (coordinator/place), and measures how much of the GPUs each
// policy allocates. It reads the lists of nodes and pods in the format of Alibaba's
// cluster-trace-gpu-v2023 ("openb"), and follows the protocol of "Beware of
// Fragmentation" (Weng et al., USENIX ATC 2023): the list of pods is inflated or cut to
// a part of the cluster's GPUs, its order is drawn, the pods arrive one after the
// other, a pod without a place is dropped, and none leaves.
//
// It decides nothing about placement, and reads no clock. The same lists, policy and
// seed give the same run.
package simulate
