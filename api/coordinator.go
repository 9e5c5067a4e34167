package api

// Roles of a coordinator.
const (
	LeaderRole   = "leader"
	FollowerRole = "follower"
)

// Coordinator is one of those that lead or would: what GET /readyz answers, and
// an item of GET /api/v1/coordinators.
type Coordinator struct {
	ID string `json:"id"`
	// Role is leader or follower, "" for one that does not answer.
	Role string `json:"role,omitempty"`
	// Epoch is the term that it leads in, or would.
	Epoch int64 `json:"epoch,omitempty"`
	// Since is when a leader began to serve, RFC 3339.
	Since string `json:"since,omitempty"`
	// Revision is the store's that its cache is at; Behind is by how much that
	// is less than the newest among all.
	Revision int64  `json:"revision,omitempty"`
	Behind   int64  `json:"behind,omitempty"`
	REST     string `json:"rest,omitempty"`
	GRPC     string `json:"grpc,omitempty"`
	Message  string `json:"message,omitempty"`
}

// CoordinatorList is the answer to GET /api/v1/coordinators: the leader first.
type CoordinatorList struct {
	Kind  string        `json:"kind"`
	Items []Coordinator `json:"items"`
}
