package series

// Cluster lists the series of /metrics/cluster, which a coordinator shows while it
// leads.
var Cluster = []Series{
	{"muster_gpus", "gauge", []string{"model"}, "devices", "GPUs of connected nodes, by model."},
	{"muster_gpus_allocated", "gauge", []string{"model"}, "devices", "Used parts of GPUs in whole devices, by model; the pools of kubelets are not counted."},
	{"muster_gpus_free", "gauge", []string{"model"}, "devices", "Unused parts of GPUs in whole devices, by model; unhealthy devices are counted too."},
	{"muster_gpus_kubelet", "gauge", []string{"model"}, "devices", "GPUs in the pools of kubelets in whole devices, by model: not allocatable, neither free nor used."},
	{"muster_gpus_unhealthy", "gauge", []string{"model"}, "devices", "GPUs that take no new work, by model."},
	{"muster_namespace_allocated", "gauge", []string{"namespace", "resource", "unit"}, "label unit", "Amount that a namespace's units hold."},
	{"muster_node_allocatable", "gauge", []string{"node", "resource", "unit"}, "label unit", "Amount of a resource that the node can hand out, without the pool of its kubelet."},
	{"muster_node_allocated", "gauge", []string{"node", "resource", "unit"}, "label unit", "Amount that is reserved or held; absent until the node's agent has been connected."},
	{"muster_node_capacity", "gauge", []string{"node", "resource", "unit"}, "label unit", "Registered amount of a resource on a node."},
	{"muster_node_condition", "gauge", []string{"condition", "node"}, "1", "1 for each condition that holds: Cordoned, Banned, Fenced, Isolated, Unapproved, Disconnected, Unregistered, Quarantined, DiskFull, Suspect."},
	{"muster_node_free", "gauge", []string{"node", "resource", "unit"}, "label unit", "Amount that is reserved for nobody, on healthy devices; absent until the node's agent has been connected."},
	{"muster_node_info", "gauge", []string{"node", "version"}, "1", "1 for each node, with its agent's version."},
	{"muster_node_ready", "gauge", []string{"node"}, "1", "1 while the node takes new work, else 0."},
	{"muster_nodes", "gauge", nil, "1", "Nodes that are registered."},
	{"muster_queue_waiting_units", "gauge", []string{"queue"}, "1", "Units that wait for a place, by queue."},
	{"muster_quota_limit", "gauge", []string{"namespace", "quota", "resource", "unit"}, "label unit", "Hard limit of a resource quota."},
	{"muster_quota_tree_limit", "gauge", []string{"group", "resource", "tree", "unit"}, "label unit", "Quota of a node of a quota tree."},
	{"muster_quota_tree_used", "gauge", []string{"group", "resource", "tree", "unit"}, "label unit", "Amount that is charged to a node of a quota tree and below it."},
	{"muster_quota_used", "gauge", []string{"namespace", "quota", "resource", "unit"}, "label unit", "Amount that counts against a resource quota's hard limit."},
	{"muster_units", "gauge", []string{"namespace", "phase"}, "1", "Units that are stored, by phase."},
}
