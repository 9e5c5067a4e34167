package limits

import (
	"fmt"
	"math"
	"strings"
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

// String is the limit as documents show it.
func (l Limit) String() string {
	switch l.kind {
	case text:
		return fmt.Sprintf("at most %s of %s", bytesText(l.max), l.chars)
	case word:
		return "one of " + strings.Join(quoted(l.words), ", ")
	case data:
		return "at most " + bytesText(l.max)
	case number:
		if l.min == math.MinInt64 && l.max == math.MaxInt64 {
			return "any number of its type"
		}
		return bound(l.min) + " to " + bound(l.max)
	case real:
		return fmt.Sprintf("%d to %d", l.min, l.max)
	case enum:
		return "a value that the enumeration names"
	case flag:
		return "true or false"
	case part:
		return "a message, with its own limits"
	case list:
		if l.elem.kind == part {
			return fmt.Sprintf("at most %d entries", l.max)
		}
		return fmt.Sprintf("at most %d entries, each %s", l.max, l.elem)
	case dict:
		return fmt.Sprintf("at most %d entries; keys: %s; values: %s", l.max, l.key, l.elem)
	}
	return "no limit: refused"
}

func quoted(words []string) []string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = "`" + w + "`"
	}
	return q
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// bound writes powers of two and their neighbours as such.
func bound(n int64) string {
	switch {
	case n == math.MinInt64:
		return "-2^63"
	case n == math.MaxInt64:
		return "2^63-1"
	case n >= 1<<20 && n&(n-1) == 0:
		power := 0
		for ; n > 1; n >>= 1 {
			power++
		}
		return fmt.Sprintf("2^%d", power)
	}
	return fmt.Sprint(n)
}
