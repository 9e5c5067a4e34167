package events

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Object is the object that an event is about. Namespace is "" for kinds that are in
// none.
type Object struct {
	Kind            string // as documents name it
	Namespace, Name string
	UID             string
}

// Event is what happened to an object, once or several times. It never changes: an
// event that is counted again is another value.
type Event struct {
	Object
	Type, Reason, Message string
	Count                 int
	First, Last           time.Time
	// Revision is the revision at which the event was counted last, and Index its
	// number among the events of that revision, from 0.
	Revision resource.Revision
	Index    int

	identity [16]byte
}

// Bounds of names.
const (
	digits = 16  // hexadecimal ones, behind the point
	most   = 253 // characters of a name
)

// NamePrefix is the beginning of the names of an object's events.
func NamePrefix(object string) string {
	return object[:min(len(object), most-digits-1)] + "."
}

// Name is the name of the event: the same at every coordinator, and for every count.
func (e *Event) Name() string {
	return NamePrefix(e.Object.Name) + hex.EncodeToString(e.identity[:digits/2])
}

// identify sets the part of the name that is the event's own. An event whose message
// changes from one count to the next keeps its identity.
func (e *Event) identify(latest bool) {
	parts := []string{e.Kind, e.Namespace, e.Object.Name, e.UID, e.Type, e.Reason}
	if !latest {
		parts = append(parts, e.Message)
	}
	sum := fnv.New128a()
	_, _ = sum.Write([]byte(strings.Join(parts, "\x00"))) // which never fails
	sum.Sum(e.identity[:0])
}

// Show shows the event as the coordinator of an id has it.
func (e *Event) Show(coordinator string) *api.Event {
	first := e.First.UTC().Format(time.RFC3339)
	return &api.Event{
		APIVersion: api.APIVersion, Kind: api.KindEvent,
		Metadata: api.ObjectMeta{
			Name: e.Name(), Namespace: e.Namespace, UID: "event-" + hex.EncodeToString(e.identity[:]),
			ResourceVersion: fmt.Sprintf("%d.%d", e.Revision, e.Index), CreationTimestamp: first,
		},
		InvolvedObject: api.ObjectReference{Kind: e.Kind, Namespace: e.Namespace, Name: e.Object.Name, UID: e.UID},
		Type:           e.Type, Reason: e.Reason, Message: e.Message, Count: e.Count,
		FirstTimestamp: first, LastTimestamp: e.Last.UTC().Format(time.RFC3339),
		Source: api.EventSource{Component: "coordinator", Host: coordinator},
	}
}

// fixedBytes is the memory of an event beside its strings, with its places in the Log
// and in the table that readers see: more than a test of package objects measures.
const fixedBytes = 640

// Bytes estimates the memory of the event and of its places.
func (e *Event) Bytes() int {
	return fixedBytes + len(e.Namespace) + len(e.Object.Name) + len(e.UID) + len(e.Reason) + len(e.Message)
}
