package limits

import (
	"math"
)

// Sizes of whole messages, in bytes.
const (
	// MaxSession bounds a message of a leader's session, either way. The largest
	// honest one is an agent's Hello: 8,192 CPUs, 256 NUMA nodes, 64 GPUs, 1,024
	// MIG instances and 64 labels of the greatest length take 0.56 MB, and
	// MaxGrants grants with names of 530 bytes and eight CPUs each 1.37 MB.
	MaxSession = 2 << 20
	// MaxRegister bounds a RegisterRequest: the host of a Hello alone.
	MaxRegister = 1 << 20
	// MaxAnswer bounds an answer of a coordinator to an agent. The largest is
	// that of ReadNode, whose records repeat an incarnation beside each grant.
	MaxAnswer = 4 << 20
	// MaxSmall bounds every other message.
	MaxSmall = 64 << 10
	// MaxEnroll bounds an EnrollRequest, which anybody may send.
	MaxEnroll = 32 << 10
)

// MaxGrants is the most grants of leaders, tombstones included, that an agent
// keeps at a time. An Occupancy may have that many, and an orphan for each
// device and MIG instance.
const MaxGrants = 2048

// MaxMemberUses bounds the members whose use a heartbeat has, and MaxUsedDevices the
// devices of all of them.
const (
	MaxMemberUses  = 1024
	MaxUsedDevices = 1024
)

// kind is the rule that a Limit sets.
type kind uint8

const (
	unset  kind = iota
	text        // a string of at most max bytes of class chars
	word        // a string that is one of words
	data        // bytes, at most max
	number      // an integer in min..max
	real        // a floating-point number in min..max
	enum        // a number that the enumeration names
	flag        // a bool
	part        // a message, with limits of its own
	list        // at most max entries within elem
	dict        // at most max entries, keys within key and values within elem
)

// Limit is the rule of one field. The zero value refuses everything.
type Limit struct {
	kind     kind
	chars    chars
	min, max int64
	words    []string
	values   map[int64]bool // of an enum; the compiler sets them
	key      *Limit
	elem     *Limit
}

// chars is a class of characters.
type chars uint8

const (
	// names are letters, digits, '.', '_' and '-': the characters of names in a
	// configuration.
	names chars = iota + 1
	// keys are names and '/': the characters of a label's key.
	keys
	// visible are the visible ASCII characters: those of an identifier, a path
	// or an address.
	visible
	// line is UTF-8 for people; control characters are replaced.
	line
	// free is any UTF-8: a client's own text, which is kept as it is.
	free
)

// String is the class as documents show it.
func (c chars) String() string {
	return [...]string{"", "letters, digits, `.`, `_`, `-`", "letters, digits, `.`, `_`, `-`, `/`", "visible ASCII", "text of one line", "any UTF-8"}[c]
}

func name(bytes int64) Limit        { return Limit{kind: text, chars: names, max: bytes} }
func labelKey(bytes int64) Limit    { return Limit{kind: text, chars: keys, max: bytes} }
func id(bytes int64) Limit          { return Limit{kind: text, chars: visible, max: bytes} }
func prose(bytes int64) Limit       { return Limit{kind: text, chars: line, max: bytes} }
func document(bytes int64) Limit    { return Limit{kind: text, chars: free, max: bytes} }
func oneOf(words ...string) Limit   { return Limit{kind: word, words: words} }
func blob(bytes int64) Limit        { return Limit{kind: data, max: bytes} }
func between(low, high int64) Limit { return Limit{kind: number, min: low, max: high} }
func floats(low, high int64) Limit  { return Limit{kind: real, min: low, max: high} }

var (
	anyInt  = Limit{kind: number, min: math.MinInt64, max: math.MaxInt64}
	natural = between(0, math.MaxInt64)
	known   = Limit{kind: enum}
	boolean = Limit{kind: flag}
	message = Limit{kind: part}
)

func listOf(count int64, elem Limit) Limit { return Limit{kind: list, max: count, elem: &elem} }

func dictOf(count int64, key, value Limit) Limit {
	return Limit{kind: dict, max: count, key: &key, elem: &value}
}
