package api

import "github.com/musterd/muster/resource"

// Explanation says why something is not running: per level the binding
// constraint and its numbers.
type Explanation struct {
	Kind          string `json:"kind"` // always "Explanation"
	Namespace     string `json:"namespace"`
	Name          string `json:"name"`
	Phase         Phase  `json:"phase"`
	Queue         string `json:"queue,omitempty"`
	QueuePosition int    `json:"queuePosition,omitempty"`
	// Summary is the answer in one sentence, numbers included.
	Summary string `json:"summary"`
	// Members is how many the next unit needs at once, Fit how many would fit
	// now.
	Members int               `json:"members"`
	Fit     int               `json:"fit"`
	Quota   []resource.Reason `json:"quota,omitempty"`
	// Shortages are the totals over the nodes that could be used.
	Shortages []resource.Reason `json:"shortages,omitempty"`
	Nodes     []NodeExplanation `json:"nodes,omitempty"`
	// Attempts counts placement attempts; LastAttempt is RFC 3339.
	Attempts    int    `json:"attempts,omitempty"`
	LastAttempt string `json:"lastAttempt,omitempty"`
}

// NodeExplanation is one node's answer to one member.
type NodeExplanation struct {
	Node    resource.NodeID   `json:"node"`
	Fit     int               `json:"fit"` // members that would fit here now
	Reasons []resource.Reason `json:"reasons,omitempty"`
}
