package api

// KindEvent is the kind of an Event document.
const KindEvent = "Event"

// Event records a change of an object, which has happened once or several times.
// Events are not stored: each coordinator derives them from the changes of the objects, and keeps
// them for an hour. An event has the namespace of its object; an event of a node
// has none.
type Event struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"Event" oneof:"Event"`
	// Metadata names the event: the name of its object, a point and 16 hexadecimal
	// digits, the same at every coordinator. The creation timestamp is firstTimestamp.
	Metadata ObjectMeta `json:"metadata"`
	// InvolvedObject is the object that the event is about.
	InvolvedObject ObjectReference `json:"involvedObject"`
	// Type is Normal, or Warning where somebody should look.
	Type string `json:"type" oneof:"Normal,Warning" example:"Warning"`
	// Reason names the change in one word, for programs.
	Reason string `json:"reason" example:"Evicted"`
	// Message describes the change in plain words, for people.
	Message string `json:"message" example:"it is being evicted, with 30 s of grace: node gpu-17 is drained"`
	// Count is how often this has happened since firstTimestamp, as far as the
	// coordinator has seen.
	Count int `json:"count" range:"1.." example:"3"`
	// FirstTimestamp is the time when it happened first.
	FirstTimestamp string `json:"firstTimestamp" format:"time" example:"2026-03-01T12:00:00Z"`
	// LastTimestamp is the time when it happened last.
	LastTimestamp string `json:"lastTimestamp" format:"time" example:"2026-03-01T12:10:00Z"`
	// Source is the coordinator that has derived the event.
	Source EventSource `json:"source"`
}

// ObjectReference names an object.
type ObjectReference struct {
	// Kind is the kind of the object.
	Kind string `json:"kind" example:"Job"`
	// Namespace is the namespace of the object; absent for a node.
	Namespace string `json:"namespace,omitempty" example:"default"`
	// Name is the name of the object.
	Name string `json:"name" example:"train"`
	// UID is the uid of the object. Another object of the same name has another uid.
	UID string `json:"uid,omitempty" example:"job-00000000000000a1"`
}

// EventSource names the program that an event comes from.
type EventSource struct {
	// Component is coordinator.
	Component string `json:"component" oneof:"coordinator"`
	// Host is the id of the coordinator.
	Host string `json:"host,omitempty" example:"coordinator-1"`
}

// EventList is a list of events, ordered by namespace and name.
type EventList struct {
	// Kind is EventList.
	Kind string `json:"kind" oneof:"EventList"`
	// Metadata has the revision, the token of the next page, and the time since which
	// the coordinator has every event.
	Metadata ListMeta `json:"metadata"`
	// Items are the events.
	Items []Event `json:"items"`
}

// The types of events.
const (
	EventNormal  = "Normal"
	EventWarning = "Warning"
)
