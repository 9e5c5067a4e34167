package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Encoding of an event: the version, the kind, then the fields in the order of
// the type. Numbers are varints (signed ones zigzag), texts have their length
// before them, times are nanoseconds of the owner's time line and 0 for the
// zero time. There is one encoding of each event in a version, and the parser
// takes no other.

// CodecVersion is the first byte of an encoded event. The parser reads earlier
// versions too, from oldestVersion on: version 1 knew no whole cores, huge pages,
// MIG instances and reasons of health; version 2 no names and tenants of grants,
// no revisions of the store but those of Enrolled and Committed, and no
// quarantine; version 3 no number of a unit's members; version 4 no counted resources and
// no operators' part of the kubelet's pool; version 5 no marks of terms and restorations.
const (
	CodecVersion  = 6
	oldestVersion = 1
)

// The kinds of events; their numbers are for ever.
const (
	kindStarted       = 1
	kindEnrolled      = 2
	kindEpochRaised   = 3
	kindGranted       = 4
	kindCommitted     = 5
	kindRenewed       = 6
	kindPromoted      = 7
	kindNoticed       = 8
	kindStopBegun     = 9
	kindBuried        = 10
	kindDropped       = 11
	kindCordonSet     = 12
	kindHealthChanged = 13
	kindQuarantined   = 14
	kindReconciled    = 15
	// kindKubeletPoolSet is of version 5 and later.
	kindKubeletPoolSet = 16
	// kindMarked is of version 6 and later.
	kindMarked = 17
)

// AppendEvent appends the encoding of an event and returns the longer slice;
// where dst has room nothing is allocated.
func AppendEvent(dst []byte, event Event) []byte {
	switch e := event.(type) {
	case Started:
		dst = append(dst, CodecVersion, kindStarted)
		dst = appendInt(appendTime(appendIncarnation(dst, e.Incarnation), e.At), int64(e.Heard))
		return binary.AppendUvarint(appendInt(dst, int64(e.Forgotten.Epoch)), e.Forgotten.Counter)
	case Enrolled:
		return appendInt(appendInt(append(dst, CodecVersion, kindEnrolled), int64(e.Revision)), int64(e.Store))
	case EpochRaised:
		return appendInt(append(dst, CodecVersion, kindEpochRaised), int64(e.Epoch))
	case Granted:
		return appendGrant(append(dst, CodecVersion, kindGranted), &e.Grant)
	case Committed:
		dst = appendText(append(dst, CodecVersion, kindCommitted), string(e.Tx))
		return appendInt(dst, int64(e.Revision))
	case Renewed:
		dst = appendText(append(dst, CodecVersion, kindRenewed), string(e.Tx))
		return appendTime(appendInt(dst, int64(e.Epoch)), e.Deadline)
	case Promoted:
		dst = appendText(append(dst, CodecVersion, kindPromoted), string(e.Tx))
		return appendTime(dst, e.Deadline)
	case Noticed:
		dst = appendText(append(dst, CodecVersion, kindNoticed), string(e.Tx))
		dst = appendTime(appendTime(appendText(dst, string(e.By)), e.Since), e.Deadline)
		return appendInt(appendInt(dst, int64(e.Grace)), int64(e.Revision))
	case StopBegun:
		dst = appendText(append(dst, CodecVersion, kindStopBegun), string(e.Tx))
		dst = appendInt(appendTime(appendTime(dst, e.Since), e.Deadline), int64(e.Grace))
		return appendInt(appendText(dst, e.Reason), int64(e.Revision))
	case Buried:
		return appendInt(appendText(append(dst, CodecVersion, kindBuried), string(e.Tx)), int64(e.Revision))
	case Dropped:
		return appendInt(appendText(append(dst, CodecVersion, kindDropped), string(e.Tx)), int64(e.Revision))
	case CordonSet:
		return appendBool(append(dst, CodecVersion, kindCordonSet), e.Cordoned)
	case KubeletPoolSet:
		return appendTexts(appendTexts(append(dst, CodecVersion, kindKubeletPoolSet), e.Add), e.Remove)
	case Quarantined:
		return appendInt(appendInt(append(dst, CodecVersion, kindQuarantined), int64(e.Heard)), int64(e.Store))
	case Reconciled:
		dst = appendInt(appendInt(append(dst, CodecVersion, kindReconciled), int64(e.Epoch)), int64(e.Revision))
		dst = binary.AppendUvarint(appendInt(dst, int64(e.Grace)), uint64(len(e.Released)))
		for _, tx := range e.Released {
			dst = appendText(dst, string(tx))
		}
		return dst
	case Marked:
		dst = appendInt(append(dst, CodecVersion, kindMarked), int64(e.Epoch))
		return appendText(appendText(dst, e.Term), e.Restored)
	case HealthChanged:
		dst = append(appendText(append(dst, CodecVersion, kindHealthChanged), e.UUID), byte(e.Health))
		return appendText(dst, e.Reason)
	}
	panic(fmt.Sprintf("ledger: encode %T: no such event", event))
}

// ParseEvent reads exactly one event; bytes that no AppendEvent, of this
// version or an earlier one, would write are an error that names the offset.
func ParseEvent(b []byte) (Event, error) {
	r := reader{b: b}
	r.version = r.byte()
	if r.err == nil && (r.version < oldestVersion || r.version > CodecVersion) {
		return nil, fmt.Errorf("event of version %d, this program reads versions %d to %d", r.version, oldestVersion, CodecVersion)
	}
	event := r.event(r.byte())
	if r.err == nil && r.at != len(b) {
		r.fail("%d bytes follow the event", len(b)-r.at)
	}
	if r.err != nil {
		return nil, fmt.Errorf("event of %d bytes, at offset %d: %w", len(b), r.at, r.err)
	}
	return event, nil
}

func (r *reader) event(kind byte) Event {
	switch kind {
	case kindStarted:
		e := Started{Incarnation: r.incarnation(), At: r.time()}
		if r.version > 2 {
			e.Heard, e.Forgotten = resource.Revision(r.int()), Attempt{resource.Epoch(r.int()), r.uint()}
		}
		return e
	case kindEnrolled:
		return Enrolled{resource.Revision(r.int()), r.revision()}
	case kindEpochRaised:
		return EpochRaised{resource.Epoch(r.int())}
	case kindGranted:
		return Granted{r.grant()}
	case kindCommitted:
		return Committed{resource.TxID(r.text()), resource.Revision(r.int())}
	case kindRenewed:
		return Renewed{resource.TxID(r.text()), resource.Epoch(r.int()), r.time()}
	case kindPromoted:
		return Promoted{resource.TxID(r.text()), r.time()}
	case kindNoticed:
		return Noticed{resource.TxID(r.text()), resource.TxID(r.text()), r.time(), r.time(), time.Duration(r.int()), r.revision()}
	case kindStopBegun:
		return StopBegun{resource.TxID(r.text()), r.time(), r.time(), time.Duration(r.int()), r.text(), r.revision()}
	case kindBuried:
		return Buried{resource.TxID(r.text()), r.revision()}
	case kindDropped:
		return Dropped{resource.TxID(r.text()), r.revision()}
	case kindCordonSet:
		return CordonSet{r.bool()}
	case kindHealthChanged:
		e := HealthChanged{UUID: r.text(), Health: devices.Health(r.byte())}
		if r.version > 1 {
			e.Reason = r.text()
		}
		if e.Health > devices.Probation {
			r.fail("health %d is unknown", e.Health)
		}
		return e
	}
	if event := r.laterEvent(kind); event != nil {
		return event
	}
	r.fail("event kind %d is unknown", kind)
	return nil
}

// laterEvent reads the kinds that came with version 3 and later; nil is none of them.
func (r *reader) laterEvent(kind byte) Event {
	switch {
	case r.version < 3:
	case kind == kindQuarantined:
		e := Quarantined{resource.Revision(r.int()), resource.Revision(r.int())}
		if r.err == nil && (e.Store < 1 || e.Store >= e.Heard && r.version < 6) {
			r.fail("quarantine: the store at %d has not gone back behind %d", e.Store, e.Heard)
		}
		return e
	case kind == kindReconciled:
		e := Reconciled{Epoch: resource.Epoch(r.int()), Revision: resource.Revision(r.int()), Grace: time.Duration(r.int())}
		for n := r.count("released transactions", 1); n > 0 && r.err == nil; n-- {
			e.Released = append(e.Released, resource.TxID(r.text()))
		}
		return e
	case r.version > 5 && kind == kindMarked:
		return Marked{resource.Epoch(r.int()), r.text(), r.text()}
	case r.version > 4 && kind == kindKubeletPoolSet:
		return KubeletPoolSet{Add: r.uuids("devices to add"), Remove: r.uuids("devices to remove")}
	}
	return nil
}

// uuids reads a list of UUIDs of the kubelet's pool; nil where it is empty.
func (r *reader) uuids(what string) (list []string) {
	n := r.count(what, 1)
	if n > grant.MaxKubeletPool {
		r.fail("%d %s, want at most %d", n, what, grant.MaxKubeletPool)
	}
	for ; n > 0 && r.err == nil; n-- {
		list = append(list, r.text())
	}
	return list
}

// AppendEvents appends the events of one decision as one journal payload: each
// with its length, 4 bytes little endian, before it.
func AppendEvents(dst []byte, events []Event) []byte {
	for _, e := range events {
		at := len(dst)
		dst = AppendEvent(append(dst, 0, 0, 0, 0), e)
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// ParseEvents reads a payload that AppendEvents made.
func ParseEvents(b []byte) ([]Event, error) {
	var events []Event
	for len(b) > 0 {
		if len(b) < 4 {
			return nil, errors.New("payload ends within an event's length")
		}
		n := binary.LittleEndian.Uint32(b)
		if uint64(n) > uint64(len(b)-4) {
			return nil, fmt.Errorf("event %d has %d bytes, %d are left in the payload", len(events), n, len(b)-4)
		}
		e, err := ParseEvent(b[4 : 4+n])
		if err != nil {
			return nil, err
		}
		events = append(events, e)
		b = b[4+n:]
	}
	return events, nil
}

func appendInt(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTexts(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendText(dst, s)
	}
	return dst
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, 0)
	}
	return appendInt(dst, t.UnixNano())
}

func appendIncarnation(dst []byte, i resource.Incarnation) []byte {
	return appendText(appendText(dst, i.JournalID), i.BootID)
}
