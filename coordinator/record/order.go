package record

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// UnitKind says what a unit was submitted as.
type UnitKind string

// The kinds, which are also their path segments.
const (
	AllocUnit UnitKind = "alloc"
	JobUnit   UnitKind = "job"
)

// UnitPath names a unit for people: the N-th unit of the named object.
type UnitPath struct {
	Namespace string
	Kind      UnitKind
	Name      string
	N         int // from 0
}

// String returns "<namespace>/<kind>/<name>/<n>" with percent-encoded
// segments; the zero path is "".
func (p UnitPath) String() string {
	if p == (UnitPath{}) {
		return ""
	}
	return string(p.append(nil))
}

func (p UnitPath) append(b []byte) []byte {
	b = append(appendSegment(b, p.Namespace), '/')
	b = append(appendSegment(b, string(p.Kind)), '/')
	b = append(appendSegment(b, p.Name), '/')
	return strconv.AppendInt(b, int64(p.N), 10)
}

// Key is the key of the unit's record.
func (p UnitPath) Key() string { return string(p.append([]byte(UnitsPrefix))) }

// MarshalText returns String.
func (p UnitPath) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *UnitPath) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = UnitPath{}
		return nil
	}
	parsed, err := ParseUnitPath(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// ParseUnitPath is the inverse of UnitPath.String for paths that are not zero.
func ParseUnitPath(path string) (UnitPath, error) { return parseUnit("unit path", path, "") }

// ParseUnitKey is the inverse of UnitPath.Key.
func ParseUnitKey(key string) (UnitPath, error) { return parseUnit("unit", key, UnitsPrefix) }

func parseUnit(what, key, prefix string) (UnitPath, error) {
	var namespace, kind, name, n string
	if err := split(what, key, prefix, &namespace, &kind, &name, &n); err != nil {
		return UnitPath{}, err
	}
	if kind != string(AllocUnit) && kind != string(JobUnit) {
		return UnitPath{}, fmt.Errorf("%s key %q: kind %q is not alloc or job", what, key, kind)
	}
	i, err := strconv.ParseUint(n, 10, 31)
	if err != nil || strconv.FormatUint(i, 10) != n {
		return UnitPath{}, fmt.Errorf("%s key %q: number %q is not a count from 0", what, key, n)
	}
	return UnitPath{Namespace: namespace, Kind: UnitKind(kind), Name: name, N: int(i)}, nil
}

// Sequence is a place in the order of arrival: the epoch of the leader that
// accepted the unit and a counter within it.
type Sequence struct {
	Epoch   resource.Epoch `json:"epoch"`
	Counter uint64         `json:"counter"`
}

// Compare orders by epoch, then counter.
func (s Sequence) Compare(o Sequence) int {
	return cmp.Or(cmp.Compare(s.Epoch, o.Epoch), cmp.Compare(s.Counter, o.Counter))
}

// OrderKey is a waiting unit's place in its queue.
//
// Invariant: within a queue, Key() sorts by bytes exactly as Compare does.
type OrderKey struct {
	Queue    string
	Priority int32 // higher goes first
	Sequence Sequence
	Unit     UnitPath
}

// Key is the key of the entry: the priority is sign-biased and inverted, and
// epoch and counter have fixed widths, so that bytes sort as numbers.
func (k OrderKey) Key() string {
	b := make([]byte, 0, len(OrderPrefix)+len(k.Queue)+8+16+16+len(k.Unit.Namespace)+len(k.Unit.Name)+32)
	b = append(appendSegment(append(b, OrderPrefix...), k.Queue), '/')
	b = append(appendHex(b, uint64(^(uint32(k.Priority)^1<<31)), 8), '/')
	b = append(appendHex(b, uint64(k.Sequence.Epoch), 16), '.')
	b = append(appendHex(b, k.Sequence.Counter, 16), '/')
	return string(k.Unit.append(b))
}

// Compare orders entries: queue, priority descending, epoch, counter, unit
// path, the last by its encoded bytes.
func (k OrderKey) Compare(o OrderKey) int {
	return cmp.Or(
		cmp.Compare(string(appendSegment(nil, k.Queue))+"/", string(appendSegment(nil, o.Queue))+"/"),
		cmp.Compare(o.Priority, k.Priority),
		k.Sequence.Compare(o.Sequence),
		cmp.Compare(k.Unit.String(), o.Unit.String()),
	)
}

// ParseOrderKey is the inverse of OrderKey.Key.
func ParseOrderKey(key string) (OrderKey, error) {
	rest, ok := strings.CutPrefix(key, OrderPrefix)
	parts := strings.SplitN(rest, "/", 4)
	if !ok || len(parts) != 4 {
		return OrderKey{}, fmt.Errorf("order key %q: want %s<queue>/<priority>/<epoch>.<counter>/<unit path>", key, OrderPrefix)
	}
	queue, err := parseSegment(parts[0])
	if err != nil {
		return OrderKey{}, fmt.Errorf("order key %q: queue: %w", key, err)
	}
	priority, err := parseHex(parts[1], 8)
	if err != nil {
		return OrderKey{}, fmt.Errorf("order key %q: priority: %w", key, err)
	}
	first, second, _ := strings.Cut(parts[2], ".")
	epoch, err := parseHex(first, 16)
	if err != nil || epoch > 1<<63-1 {
		return OrderKey{}, fmt.Errorf("order key %q: epoch %q is not 16 hex digits of a revision", key, first)
	}
	counter, err := parseHex(second, 16)
	if err != nil {
		return OrderKey{}, fmt.Errorf("order key %q: counter: %w", key, err)
	}
	unit, err := ParseUnitPath(parts[3])
	if err != nil {
		return OrderKey{}, fmt.Errorf("order key %q: %w", key, err)
	}
	return OrderKey{
		Queue:    queue,
		Priority: int32(^uint32(priority) ^ 1<<31),
		Sequence: Sequence{Epoch: resource.Epoch(epoch), Counter: counter},
		Unit:     unit,
	}, nil
}

const lowerHex = "0123456789abcdef"

// appendHex appends the low digits of v, most significant first.
func appendHex(b []byte, v uint64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b = append(b, lowerHex[v>>shift&15])
	}
	return b
}

// parseHex reads exactly the given number of lower-case hex digits.
func parseHex(s string, digits int) (uint64, error) {
	if len(s) != digits {
		return 0, fmt.Errorf("%q is not %d hex digits", s, digits)
	}
	var v uint64
	for i := 0; i < len(s); i++ {
		d := strings.IndexByte(lowerHex, s[i])
		if d < 0 {
			return 0, fmt.Errorf("%q is not %d lower-case hex digits", s, digits)
		}
		v = v<<4 | uint64(d)
	}
	return v, nil
}
