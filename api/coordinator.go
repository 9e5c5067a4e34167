package api

// Roles of a coordinator.
const (
	LeaderRole   = "leader"
	FollowerRole = "follower"
)

// Coordinator is a coordinator that leads or would lead: the answer of GET
// /readyz, and an item of GET /api/v1/coordinators.
type Coordinator struct {
	// ID is the coordinator's name.
	ID string `json:"id" example:"coordinator-1"`
	// Role is leader or follower; empty for a coordinator that does not answer.
	Role string `json:"role,omitempty" oneof:"leader,follower"`
	// Epoch is the number of the term that the coordinator leads in.
	Epoch int64 `json:"epoch,omitempty" example:"17"`
	// Since is the time when the leader began to serve.
	Since string `json:"since,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
	// Revision is the store's revision that the coordinator's cache is at.
	Revision int64 `json:"revision,omitempty" example:"1042"`
	// Behind is the difference to the newest revision of all coordinators.
	Behind int64 `json:"behind,omitempty" unit:"revisions" example:"3"`
	// REST is the address of the REST API.
	REST string `json:"rest,omitempty" example:"https://10.0.0.2:8470"`
	// GRPC is the address of the gRPC API.
	GRPC string `json:"grpc,omitempty" example:"10.0.0.2:8471"`
	// Message says why the coordinator does not answer.
	Message string `json:"message,omitempty" example:"does not answer: connection refused"`
}

// CoordinatorList is the answer of GET /api/v1/coordinators, the leader first.
type CoordinatorList struct {
	// Kind is CoordinatorList.
	Kind string `json:"kind" oneof:"CoordinatorList"`
	// Items are the coordinators.
	Items []Coordinator `json:"items"`
}
