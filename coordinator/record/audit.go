package record

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// AuditPrefix holds Audit by hour and id, each for 25 hours.
const AuditPrefix = Root + "audit/"

// AuditKey is the key of the entry of a change.
func AuditKey(a *Audit) string {
	return join(AuditPrefix, time.UnixMilli(a.AtMillis).UTC().Format("2006-01-02T15"), a.ID)
}

// Actor is the caller who has asked for a change. A record that a change creates has
// the Actor in it; any other change writes an Audit in its Txn.
type Actor struct {
	// ID is the change's own. Ids sort by time.
	ID string `json:"id"`
	// Person is the user of the token or of the certificate, and Token the id of the
	// access token, "" for the administrator's.
	Person string `json:"person"`
	Token  string `json:"token,omitempty"`
	// Tenant is the caller's, "" for a caller with a role in the whole cluster.
	Tenant    string `json:"tenant,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Address is the client's, "host:port". Where another coordinator has passed the
	// request on, Via is that coordinator.
	Address string `json:"address,omitempty"`
	Via     string `json:"via,omitempty"`
}

// User is the name of the person, "" where nobody is noted.
func (a *Actor) User() string {
	if a == nil {
		return ""
	}
	return a.Person
}

// Audit is a change, and the caller who has asked for it (AuditKey).
type Audit struct {
	Actor
	AtMillis int64 `json:"atMillis"` // since 1970, by the clock of the coordinator that was asked
	// Verb and Kind are those of the table of rights. Namespace and Name are the
	// object; Name is "" for a change of several objects.
	Verb      string `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Count is the number of changes in the entry, 0 for 1.
	Count int64 `json:"count,omitempty"`
	// Apart: the caller is an administrator, an operator or a host; not stored.
	Apart bool `json:"-"`
}

func (a Audit) check() error {
	switch {
	case a.ID == "":
		return errors.New("id is empty")
	case a.Verb == "" || a.Kind == "":
		return fmt.Errorf("verb %q of kind %q: neither may be empty", a.Verb, a.Kind)
	}
	return nil
}

// Note returns the operation that notes a change beside others in one Txn. A change
// whose object has no name in the request has that of the first key.
func (a Audit) Note(lease LeaseID, beside []Op) Op {
	if a.Name == "" && a.Count == 0 && a.Verb == "create" && len(beside) > 0 {
		a.Name = beside[0].Key[strings.LastIndexByte(beside[0].Key, '/')+1:]
	}
	return PutLeased(AuditKey(&a), MustEncode(a), lease)
}

// Submission is the entry of the caller who has submitted work. Its time is that in the
// id.
func Submission(by *Actor, kind, namespace, name string) Audit {
	text, _, _ := strings.Cut(by.ID, "-")
	millis, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		millis = 0 // a record that somebody has written by hand
	}
	return Audit{Actor: *by, AtMillis: millis, Verb: "create", Kind: kind, Namespace: namespace, Name: name}
}
