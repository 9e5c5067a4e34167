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
	// Nomination is who makes room for it, while they do.
	Nomination *Nomination `json:"nomination,omitempty"`
	// PreemptionBlockedBy is the reason why no other unit is preempted for this
	// one, where others could make room.
	PreemptionBlockedBy string `json:"preemptionBlockedBy,omitempty"`
	// Attempts counts placement attempts; LastAttempt is RFC 3339.
	Attempts    int    `json:"attempts,omitempty"`
	LastAttempt string `json:"lastAttempt,omitempty"`
}

// Nomination is a place that others have to leave first.
type Nomination struct {
	// WaitingFor names, in one sentence, the event that the nomination waits for.
	WaitingFor string   `json:"waitingFor"`
	Victims    []Victim `json:"victims"`
	// Since is when the victims were given notice, RFC 3339; "" before that.
	Since string `json:"since,omitempty"`
}

// Victim is a unit that makes room for another.
type Victim struct {
	Unit     string `json:"unit"` // "namespace/alloc|job/name/n"
	Priority int32  `json:"priority"`
	Members  int    `json:"members"`
	// Freed: all its members have left.
	Freed bool `json:"freed,omitempty"`
}

// NodeExplanation is one node's answer to one member.
type NodeExplanation struct {
	Node    resource.NodeID   `json:"node"`
	Fit     int               `json:"fit"` // members that would fit here now
	Reasons []resource.Reason `json:"reasons,omitempty"`
}
