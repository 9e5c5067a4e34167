package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// SchemaVersion is the "v" of every value that this package writes.
const SchemaVersion = 1

// Type is any value kept under Root.
type Type interface {
	Tx | Ready | Unit | Job | Order | Request |
		NodeIdentity | NodeSpec | NodeStatus | NodeLease | NodeObserved | NodeLost | NodeTx | Quota | QuotaLimit | LeaderAddress | QuotaMode | Seats |
		Authorities | GossipKeys | BootstrapToken | Enrolled | Ban | Operator | Cluster | Object | Configured | AccessToken | Audit | HistoryPosition | Term | Restored | KnownLevel | Raise
	check() error
}

// versionPrefix is how every encoded value begins.
const versionPrefix = `{"v":1`

// whiteSpace is the white space of JSON.
const whiteSpace = " \t\r\n"

// usualRecord is room for most records, in bytes: a transaction's has about 500.
const usualRecord = 768

// Encode writes a record as JSON with its schema version first. It refuses a
// record that Decode would refuse.
func Encode[R Type](r R) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", r, err)
	}
	var b bytes.Buffer
	b.Grow(usualRecord)
	b.WriteString(versionPrefix)
	mark := b.Len()
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // documents are kept as they were written
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode %T: %w", r, err)
	}
	out := b.Bytes()[:b.Len()-1] // without the encoder's line feed
	if len(out) == mark+len("{}") {
		return append(out[:mark], '}'), nil
	}
	out[mark] = ','
	return out, nil
}

// MustEncode is Encode for a record that its caller has made whole; an invalid
// one is a broken invariant.
func MustEncode[R Type](r R) []byte {
	b, err := Encode(r)
	if err != nil {
		panic(err.Error())
	}
	return b
}

// Decode reads what Encode wrote. An unknown version, an unknown field, a
// wrong type or a broken rule is an error that names the key.
func Decode[R Type](key string, value []byte) (R, error) {
	var r, zero R
	body, err := stripVersion(value)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err = d.Decode(&r); err == nil {
			if len(bytes.TrimLeft(body[d.InputOffset():], whiteSpace)) > 0 {
				err = errors.New("data follows the value")
			} else {
				err = r.check()
			}
		}
	}
	if err != nil {
		return zero, fmt.Errorf("decode %s as %T: %w", key, zero, err)
	}
	return r, nil
}

// stripVersion checks the schema version and returns the value without it.
func stripVersion(value []byte) ([]byte, error) {
	if rest, ok := bytes.CutPrefix(value, []byte(versionPrefix)); ok && len(rest) > 0 {
		switch rest[0] {
		case '}':
			return append([]byte{'{'}, rest...), nil
		case ',':
			body := bytes.Clone(value[len(versionPrefix):])
			body[0] = '{'
			if next := bytes.TrimLeft(body[1:], whiteSpace); len(next) > 0 && next[0] == '}' {
				return nil, errors.New("a field must follow the comma after v")
			}
			return body, nil
		}
	}
	// Written by hand or by another version: find "v" wherever it is.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return nil, err
	}
	raw, ok := fields["v"]
	if !ok {
		return nil, fmt.Errorf(`it has no schema version "v"; this program reads version %d`, SchemaVersion)
	}
	if string(bytes.TrimSpace(raw)) != fmt.Sprint(SchemaVersion) {
		return nil, fmt.Errorf("schema version %s is not known; this program reads version %d", raw, SchemaVersion)
	}
	delete(fields, "v")
	return json.Marshal(fields)
}

func (r Tx) check() error {
	switch r.State {
	case grant.RecordAborted:
		return nil
	case grant.RecordCommitted, grant.RecordEvicting, grant.RecordReleasing, grant.RecordReleased:
	default:
		return fmt.Errorf("state %q is not COMMITTED, EVICTING, RELEASING, RELEASED or ABORTED", r.State)
	}
	if r.Epoch <= 0 {
		return fmt.Errorf("epoch %d of a %s record: want a revision", r.Epoch, r.State)
	}
	if r.Unit == (UnitPath{}) || r.UnitUID == "" {
		return fmt.Errorf("unit %q with UID %q of a %s record: want both", r.Unit, r.UnitUID, r.State)
	}
	if len(r.Members) == 0 {
		return fmt.Errorf("members of a %s record: want at least one", r.State)
	}
	if r.Alternative < 0 {
		return fmt.Errorf("alternative %d of a %s record: want 0 or more", r.Alternative, r.State)
	}
	for i, m := range r.Members {
		if m.Member < 0 || m.Node == "" {
			return fmt.Errorf("members[%d]: index %d on node %q", i, m.Member, m.Node)
		}
	}
	for i, m := range r.LostMembers {
		if m.Member < 0 || m.Node == "" || m.AtMillis < 0 || slices.ContainsFunc(r.Members, func(p Placement) bool { return p.Member == m.Member }) {
			return fmt.Errorf("lostMembers[%d]: index %d on node %q at %d: want a node, milliseconds since 1970, and no member that is in members", i, m.Member, m.Node, m.AtMillis)
		}
	}
	if r.GraceSeconds < 0 {
		return fmt.Errorf("graceSeconds %d is negative", r.GraceSeconds)
	}
	if r.Port < 0 || r.Port > 65535 {
		return fmt.Errorf("port %d: want 1..65535, or 0 for none", r.Port)
	}
	if r.EndingMillis < 0 || r.CommittedMillis < 0 || r.EndedMillis < 0 {
		return fmt.Errorf("committedMillis %d, endingMillis %d, endedMillis %d: want milliseconds since 1970", r.CommittedMillis, r.EndingMillis, r.EndedMillis)
	}
	if o := r.Outcome; o != nil {
		if o.Phase == "" {
			return errors.New("outcome: phase is empty")
		}
		if err := checkExits("outcome.exits", o.Exits); err != nil {
			return err
		}
	}
	for i, c := range r.Charges {
		if err := nonNegative(fmt.Sprintf("charges[%d].request", i), c.Request); err != nil {
			return err
		}
	}
	return nil
}

func checkExits(field string, exits []Exit) error {
	for i, e := range exits {
		if e.Member < 0 || i > 0 && e.Member <= exits[i-1].Member || e.Reason == "" {
			return fmt.Errorf("%s[%d]: member %d with reason %q: want ascending members, each with a reason", field, i, e.Member, e.Reason)
		}
		if err := e.Use.check(); err != nil {
			return fmt.Errorf("%s[%d].%w", field, i, err)
		}
	}
	return nil
}

func (u *Use) check() error {
	if u != nil && (u.CPUMillis < 0 || u.Memory < 0 || u.PeakMemory < 0 || u.OOMKills != nil && *u.OOMKills < 0) {
		return fmt.Errorf("use: %+v: want nothing negative", *u)
	}
	return nil
}

func (r Ready) check() error {
	if r.AtMillis < 0 || r.AtMillis == 0 && len(r.Freed) == 0 {
		return fmt.Errorf("atMillis %d: want milliseconds since 1970", r.AtMillis)
	}
	return nil
}

func (r Unit) check() error {
	switch {
	case r.Kind != AllocUnit && r.Kind != JobUnit:
		return fmt.Errorf("kind %q is not alloc or job", r.Kind)
	case r.UID == "":
		return errors.New("uid is empty")
	case r.Name == "" || r.Namespace == "":
		return fmt.Errorf("namespace %q and name %q: want both", r.Namespace, r.Name)
	case r.N < 0:
		return fmt.Errorf("n %d is negative", r.N)
	case r.Members < 1:
		return fmt.Errorf("members %d: want at least 1", r.Members)
	case len(r.Lost) >= r.Members:
		return fmt.Errorf("lost %v: want fewer than the %d members", r.Lost, r.Members)
	case r.Replaces && (r.Parent == "" || r.Members != 1):
		return fmt.Errorf("replaces, with parent %q and %d members: want a parent and one member", r.Parent, r.Members)
	case r.EndedMillis < 0:
		return fmt.Errorf("endedMillis %d: want milliseconds since 1970", r.EndedMillis)
	}
	for i, index := range r.Lost {
		if index < 0 || index >= r.Members || i > 0 && index <= r.Lost[i-1] {
			return fmt.Errorf("lost %v: want ascending indices below %d", r.Lost, r.Members)
		}
	}
	return checkExits("exits", r.Exits)
}

func (r Job) check() error {
	switch {
	case r.UID == "":
		return errors.New("uid is empty")
	case r.Name == "" || r.Namespace == "":
		return fmt.Errorf("namespace %q and name %q: want both", r.Namespace, r.Name)
	case len(r.Document) == 0:
		return errors.New("document is empty")
	case r.EndedMillis < 0:
		return fmt.Errorf("endedMillis %d: want milliseconds since 1970", r.EndedMillis)
	}
	for i, index := range r.Met {
		if index < 0 || i > 0 && index <= r.Met[i-1] {
			return fmt.Errorf("met %v: want ascending indices", r.Met)
		}
	}
	return nil
}

func (r Order) check() error {
	if r.UnitUID == "" {
		return errors.New("unitUID is empty")
	}
	if w := r.Waiting; w != nil && (w.Code == "" || w.SinceMillis < 0 || w.Refusals < 0 || w.NextMillis < 0) {
		return fmt.Errorf("waiting: code %q, sinceMillis %d, refusals %d, nextMillis %d: want a code, and nothing negative", w.Code, w.SinceMillis, w.Refusals, w.NextMillis)
	}
	return nil
}

func (r Request) check() error {
	if r.Object == "" {
		return errors.New("object is empty")
	}
	return nil
}

func (r NodeIdentity) check() error {
	if r.Incarnation.JournalID == "" || r.Incarnation.BootID == "" {
		return fmt.Errorf("incarnation %q: want a journal and a boot id", r.Incarnation)
	}
	return nil
}

func (r NodeSpec) check() error {
	for device, at := range r.Topology.GPUModel {
		if at < 0 || at >= len(r.Topology.GPUModels) {
			return fmt.Errorf("topology.gpuModel of device %d: %d is not one of %d models", device, at, len(r.Topology.GPUModels))
		}
	}
	err := errors.Join(nonNegative("capacity", r.Capacity), nonNegative("allocatable", r.Allocatable), nonNegative("lowered", r.Lowered))
	if r.Approved != nil {
		err = errors.Join(err, nonNegative("approved.amounts", r.Approved.Amounts))
	}
	if r.AssumeDeadMillis < 0 {
		err = errors.Join(err, fmt.Errorf("assumeDeadMillis %d is negative", r.AssumeDeadMillis))
	}
	if k := r.Kubelet; k != nil {
		err = errors.Join(err, grant.KubeletPool(*k).Check())
	}
	return err
}

func (r NodeStatus) check() error {
	if len(r.Devices) > devices.MaxUses {
		return fmt.Errorf("devices: %d of them, want at most %d", len(r.Devices), devices.MaxUses)
	}
	for i, d := range r.Devices {
		if d.Percent < devices.UnknownUse || d.Percent > 100 || d.Memory < devices.UnknownUse {
			return fmt.Errorf("devices[%d] %q: %d percent and %d bytes, want 0 to 100 percent, or %d for unknown", i, d.UUID, d.Percent, d.Memory, devices.UnknownUse)
		}
	}
	for i, w := range r.Work {
		if w.Tx == "" || w.Member < 0 || i > 0 && r.Work[i-1].CompareMember(w.Tx, w.Member) >= 0 {
			return fmt.Errorf("work[%d]: transaction %q, member %d: want ascending transactions and members", i, w.Tx, w.Member)
		}
		if err := w.Use.check(); err != nil {
			return fmt.Errorf("work[%d].%w", i, err)
		}
	}
	return errors.Join(nonNegative("usage", r.Usage), r.Kubelet.check())
}

func (r NodeLease) check() error { return nil }

func (r NodeTx) check() error {
	for i, m := range r.Members {
		if m < 0 {
			return fmt.Errorf("members[%d] %d is negative", i, m)
		}
	}
	return nil
}

func (r Quota) check() error {
	switch {
	case r.UID == "":
		return errors.New("uid is empty")
	case r.Name == "":
		return errors.New("name is empty")
	case len(r.Document) == 0:
		return errors.New("document is empty")
	case r.ChangedMillis < 0:
		return fmt.Errorf("changedMillis %d is negative: want milliseconds since 1970", r.ChangedMillis)
	}
	return nil
}

func (r QuotaLimit) check() error {
	if r.Namespace == "" {
		return errors.New("namespace is empty")
	}
	return nonNegative("hard", r.Hard)
}

func (r LeaderAddress) check() error {
	if r.ID == "" {
		return errors.New("id is empty")
	}
	return nil
}

func nonNegative(field string, v resource.Vector) error {
	for _, name := range v.Names() {
		if v[name] < 0 {
			return fmt.Errorf("%s: %s %d is negative", field, name, v[name])
		}
	}
	return nil
}
