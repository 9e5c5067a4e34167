package api

// MaxSnapshot bounds the document of a snapshot, in bytes, for the server that writes it
// and for those that read it. That is some 200,000 keys of the store, or more.
const MaxSnapshot = 128 << 20

// ClusterSnapshot is the scheduling state of a cluster, for muster simulate: nodes,
// devices, quotas, queues, running and waiting work, and the mix of work that the leader
// has learned. It has no commands, environments, annotations, addresses and credentials.
type ClusterSnapshot struct {
	// Kind is ClusterSnapshot.
	Kind string `json:"kind" oneof:"ClusterSnapshot"`
	// Revision is the revision of the store that the snapshot is of.
	Revision int64 `json:"revision" example:"4711"`
	// TakenAt is the instant of the snapshot by the leader's clock.
	TakenAt string `json:"takenAt" format:"time" example:"2026-03-01T12:00:00Z"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes" example:"12"`
	// Units is the number of units, running and waiting: an allocation, or all members of
	// a gang.
	Units int `json:"units" example:"40"`
	// Undecided is the number of units whose start was under way. They wait in the
	// snapshot.
	Undecided int `json:"undecided" example:"0"`
	// Document is the snapshot as JSON text, with the version of its format.
	// muster snapshot writes it into a file.
	Document string `json:"document" example:"{}"`
}
