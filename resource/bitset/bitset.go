// Package bitset holds sets of small non-negative integers (CPU numbers, NUMA
// node numbers, GPU indices) and reads and prints the kernel's list format
// ("0-3,8"). It decides nothing.
package bitset

import (
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// MaxMember is the greatest integer a Set takes: far above any kernel's
// NR_CPUS, low enough that a hostile list cannot exhaust memory.
const MaxMember = 1<<16 - 1

// MaxListLen is the longest list Parse reads, in bytes: longer than the list of
// all members one by one, short enough that a hostile list cannot hold the
// reader up. For the same reason a list may have at most maxGroups groups in all
// its strides together.
const MaxListLen = 1 << 19

const maxGroups = 1 << 20

// Set is a set of integers in 0..MaxMember. The zero value is empty. Copying a
// Set shares its words: use Clone before changing a copy.
type Set struct{ words []uint64 }

// Of returns the set of the given members. It panics on a member outside
// 0..MaxMember, as Add does.
func Of(members ...int) Set {
	var s Set
	for _, m := range members {
		s.Add(m)
	}
	return s
}

// Add puts i into the set. i outside 0..MaxMember is a broken invariant of the
// caller and panics; Parse refuses such input with an error instead.
func (s *Set) Add(i int) {
	if i < 0 || i > MaxMember {
		panic(fmt.Sprintf("bitset: member %d outside 0..%d", i, MaxMember))
	}
	for len(s.words) <= i/64 {
		s.words = append(s.words, 0)
	}
	s.words[i/64] |= 1 << (i % 64)
}

// Remove takes i out of the set; absent members are no error.
func (s *Set) Remove(i int) {
	if i >= 0 && i/64 < len(s.words) {
		s.words[i/64] &^= 1 << (i % 64)
	}
}

// Has reports whether i is a member.
func (s Set) Has(i int) bool {
	return i >= 0 && i/64 < len(s.words) && s.words[i/64]&(1<<(i%64)) != 0
}

// Len returns the number of members.
func (s Set) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// IsEmpty reports whether there is no member.
func (s Set) IsEmpty() bool {
	for _, w := range s.words {
		if w != 0 {
			return false
		}
	}
	return true
}

// Min returns the least member, or -1 for the empty set.
func (s Set) Min() int {
	for i, w := range s.words {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// All yields the members in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for w != 0 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
				w &= w - 1
			}
		}
	}
}

// Members returns the members in ascending order.
func (s Set) Members() []int {
	m := make([]int, 0, s.Len())
	for i := range s.All() {
		m = append(m, i)
	}
	return m
}

// Clone returns an independent copy.
func (s Set) Clone() Set { return Set{append([]uint64(nil), s.words...)} }

// Equal reports whether both sets have the same members.
func (s Set) Equal(t Set) bool {
	for i := range max(len(s.words), len(t.words)) {
		if s.word(i) != t.word(i) {
			return false
		}
	}
	return true
}

// Union returns a new set with the members of either.
func (s Set) Union(t Set) Set {
	return s.combine(t, func(a, b uint64) uint64 { return a | b })
}

// Intersect returns a new set with the members of both.
func (s Set) Intersect(t Set) Set {
	return s.combine(t, func(a, b uint64) uint64 { return a & b })
}

// Minus returns a new set with the members of s that are not in t.
func (s Set) Minus(t Set) Set {
	return s.combine(t, func(a, b uint64) uint64 { return a &^ b })
}

func (s Set) word(i int) uint64 {
	if i < len(s.words) {
		return s.words[i]
	}
	return 0
}

func (s Set) combine(t Set, op func(a, b uint64) uint64) Set {
	words := make([]uint64, max(len(s.words), len(t.words)))
	for i := range words {
		words[i] = op(s.word(i), t.word(i))
	}
	return Set{words}
}

// String returns the kernel's list format, "" for the empty set.
func (s Set) String() string {
	var b strings.Builder
	first, last := -2, -2
	flush := func() {
		if first < 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteString("-" + strconv.Itoa(last))
		}
	}
	for i := range s.All() {
		if i != last+1 {
			flush()
			first = i
		}
		last = i
	}
	flush()
	return b.String()
}

// MarshalText returns the list format.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the list format.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Parse reads the kernel's list format (Documentation/admin-guide/
// kernel-parameters, "cpu lists"): numbers and ranges separated by commas,
// ranges with an optional stride "0-31:2/8" (take 2 of every 8). White space
// around the list is ignored, and the empty list is the empty set. An error
// names the faulty element and its offset in bytes. A list of more than
// MaxListLen bytes is refused unread.
func Parse(list string) (Set, error) {
	var s Set
	if len(list) > MaxListLen {
		return s, fmt.Errorf("list of %d bytes is longer than %d", len(list), MaxListLen)
	}
	text := strings.TrimSpace(list)
	if text == "" {
		return s, nil
	}
	offset, groups := strings.Index(list, text), 0
	for element := range strings.SplitSeq(text, ",") {
		if err := s.addElement(element, &groups); err != nil {
			return Set{}, fmt.Errorf("list element %.40q at offset %d: %w", element, offset, err)
		}
		offset += len(element) + 1
	}
	return s, nil
}

// addElement adds a number or a range, and to groups the groups of its stride.
func (s *Set) addElement(element string, groups *int) error {
	span, stride, strided := strings.Cut(element, ":")
	lowText, highText, isRange := strings.Cut(span, "-")
	low, err := parseMember(lowText)
	if err != nil {
		return err
	}
	high := low
	if isRange {
		if high, err = parseMember(highText); err != nil {
			return err
		}
		if high < low {
			return fmt.Errorf("range ends at %d before it starts at %d", high, low)
		}
	}
	used, group := 1, 1
	if strided {
		usedText, groupText, ok := strings.Cut(stride, "/")
		if !ok || !isRange {
			return fmt.Errorf("stride wants the form LOW-HIGH:USED/GROUP")
		}
		if used, err = parseMember(usedText); err != nil {
			return err
		}
		if group, err = parseMember(groupText); err != nil {
			return err
		}
		if used < 1 || group < used {
			return fmt.Errorf("stride %d/%d: want 1 <= used <= group", used, group)
		}
	}
	if used == group {
		s.addRange(low, high)
		return nil
	}
	if *groups += (high-low)/group + 1; *groups > maxGroups {
		return fmt.Errorf("the strides up to here have %d groups, more than %d", *groups, maxGroups)
	}
	for first := low; first <= high; first += group {
		s.addRange(first, min(first+used-1, high))
	}
	return nil
}

// addRange adds low..high a word at a time: 0 <= low <= high <= MaxMember.
func (s *Set) addRange(low, high int) {
	for len(s.words) <= high/64 {
		s.words = append(s.words, 0)
	}
	for w := low / 64; w <= high/64; w++ {
		word := ^uint64(0)
		if w == low/64 {
			word <<= low % 64
		}
		if w == high/64 {
			word &= ^uint64(0) >> (63 - high%64)
		}
		s.words[w] |= word
	}
}

func parseMember(text string) (int, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > MaxMember {
		return 0, fmt.Errorf("%.40q is greater than %d", text, MaxMember)
	}
	return n, nil
}
