package bitset_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource/bitset"
)

func TestParseReadsTheKernelsLists(t *testing.T) {
	for name, c := range map[string]struct {
		list string
		want []int
	}{
		"the empty list is the empty set":                {"", []int{}},
		"white space alone is the empty set":             {" \t\n", []int{}},
		"one number is one member":                       {"0", []int{0}},
		"a file's newline is ignored":                    {"0-3\n", []int{0, 1, 2, 3}},
		"space around the list is ignored":               {"  2,4 ", []int{2, 4}},
		"numbers and ranges mix":                         {"0-2,8,10-11", []int{0, 1, 2, 8, 10, 11}},
		"a range may start and end at one number":        {"5-5", []int{5}},
		"elements may come in any order":                 {"9,3,0-1", []int{0, 1, 3, 9}},
		"repeated members count once":                    {"1,1,0-2,2-3", []int{0, 1, 2, 3}},
		"leading zeros are read in base ten":             {"010", []int{10}},
		"a range crosses a word's border":                {"62-65", []int{62, 63, 64, 65}},
		"a range fills whole words":                      {"63-128:65/66", count(63, 127)},
		"a stride takes 2 of every 8":                    {"0-31:2/8", []int{0, 1, 8, 9, 16, 17, 24, 25}},
		"a stride counts from the start of its range":    {"3-9:1/3", []int{3, 6, 9}},
		"a range ends inside the used part of a group":   {"0-8:2/4", []int{0, 1, 4, 5, 8}},
		"a stride that uses its whole group is a range":  {"1-4:3/3", []int{1, 2, 3, 4}},
		"a group longer than the range is taken once":    {"1-4:2/65535", []int{1, 2}},
		"strided and plain elements mix":                 {"0-3:1/2,7", []int{0, 2, 7}},
		"the greatest member is read":                    {"65535", []int{65535}},
		"a range whose start and end share a late word":  {"1000-1001", []int{1000, 1001}},
		"a stride of the last words ends at the maximum": {"65530-65535:1/5", []int{65530, 65535}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bitset.Parse(c.list)
			if err != nil {
				t.Fatalf("Parse(%q): %v", c.list, err)
			}
			if diff := cmp.Diff(c.want, got.Members()); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", c.list, diff)
			}
		})
	}
}

func TestParseNamesTheFaultyElement(t *testing.T) {
	const notStride = "stride wants the form LOW-HIGH:USED/GROUP"
	for name, c := range map[string]struct{ list, want string }{
		"a word":                              {"all", `list element "all" at offset 0: "all" is not a number`},
		"a fault after good elements":         {"0-3,x", `list element "x" at offset 4: "x" is not a number`},
		"leading white space counts":          {"  0,x", `list element "x" at offset 4: "x" is not a number`},
		"white space inside the list":         {"0, 1", `list element " 1" at offset 2: " 1" is not a number`},
		"a trailing comma":                    {"0,", `list element "" at offset 2: "" is not a number`},
		"a leading comma":                     {",0", `list element "" at offset 0: "" is not a number`},
		"a comma alone":                       {",", `list element "" at offset 0: "" is not a number`},
		"a negative number":                   {"-1", `list element "-1" at offset 0: "" is not a number`},
		"a plus sign":                         {"+1", `list element "+1" at offset 0: "+1" is not a number`},
		"a range without an end":              {"3-", `list element "3-" at offset 0: "" is not a number`},
		"a range of three":                    {"1-2-3", `list element "1-2-3" at offset 0: "2-3" is not a number`},
		"a range that ends first":             {"1,8-3", `list element "8-3" at offset 2: range ends at 3 before it starts at 8`},
		"a hexadecimal number":                {"0x1", `list element "0x1" at offset 0: "0x1" is not a number`},
		"digits of another script":            {"٣", `list element "٣" at offset 0: "٣" is not a number`},
		"a number just too great":             {"65536", `list element "65536" at offset 0: "65536" is greater than 65535`},
		"a range whose end is too great":      {"0-65536", `list element "0-65536" at offset 0: "65536" is greater than 65535`},
		"a number beyond 64 bits":             {"99999999999999999999", `list element "99999999999999999999" at offset 0: "99999999999999999999" is greater than 65535`},
		"an element too long to repeat":       {strings.Repeat("9", 50), fmt.Sprintf("list element %q at offset 0: %q is greater than 65535", strings.Repeat("9", 40), strings.Repeat("9", 40))},
		"a stride without a range":            {"5:1/2", `list element "5:1/2" at offset 0: ` + notStride},
		"a stride without a group":            {"0-5:1", `list element "0-5:1" at offset 0: ` + notStride},
		"a stride that uses nothing":          {"0-5:0/2", `list element "0-5:0/2" at offset 0: stride 0/2: want 1 <= used <= group`},
		"a stride of empty groups":            {"0-5:0/0", `list element "0-5:0/0" at offset 0: stride 0/0: want 1 <= used <= group`},
		"a stride that uses more than it has": {"0-5:3/2", `list element "0-5:3/2" at offset 0: stride 3/2: want 1 <= used <= group`},
		"a stride of words":                   {"0-5:a/b", `list element "0-5:a/b" at offset 0: "a" is not a number`},
		"a stride whose group is missing":     {"0-5:1/", `list element "0-5:1/" at offset 0: "" is not a number`},
		"a list too long to read":             {strings.Repeat("0-65535,", 1<<17), "list of 1048576 bytes is longer than 524288"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bitset.Parse(c.list)
			if err == nil {
				t.Fatalf("Parse(%.40q) = %q, want the error %s", c.list, got, c.want)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !got.IsEmpty() {
				t.Errorf("a refused list left members: %s", got)
			}
		})
	}
}

func TestStridesTogetherHaveABoundedNumberOfGroups(t *testing.T) {
	const element = "0-65535:1/2" // 1<<15 groups, of 1<<20 in all
	list := strings.Repeat(element+",", 32)
	if got, err := bitset.Parse(list + "1"); err != nil || got.Len() != 1<<15+1 {
		t.Errorf("32 strides read as %d members, %v", got.Len(), err)
	}
	_, err := bitset.Parse(list + "0-1:1/2")
	const want = `list element "0-1:1/2" at offset 384: the strides up to here have 1048577 groups, more than 1048576`
	if err == nil || err.Error() != want {
		t.Errorf("one group too many: %v, want %s", err, want)
	}
}

func TestTheListOfEveryMemberOneByOneIsShortEnoughToRead(t *testing.T) {
	members := count(0, bitset.MaxMember)
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(members), " ", ","), "[]")
	got, err := bitset.Parse(text)
	if err != nil {
		t.Fatalf("a list of %d bytes: %v", len(text), err)
	}
	if got.Len() != len(members) || got.String() != "0-65535" {
		t.Errorf("read %d members as %.40q, want %d as 0-65535", got.Len(), got.String(), len(members))
	}
}

func TestSetsTravelAsTextInJSON(t *testing.T) {
	type host struct{ CPUs bitset.Set }
	want := host{CPUs: bitset.Of(0, 1, 2, 7)}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != `{"CPUs":"0-2,7"}` {
		t.Errorf("JSON is %s", data)
	}
	got := host{CPUs: bitset.Of(99)}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if !got.CPUs.Equal(want.CPUs) {
		t.Errorf("read back %s, want %s", got.CPUs, want.CPUs)
	}
	if err := json.Unmarshal([]byte(`{"CPUs":"2-1"}`), &got); err == nil {
		t.Error("a faulty list was read")
	}
	if !got.CPUs.Equal(want.CPUs) {
		t.Errorf("a faulty list changed the set to %s", got.CPUs)
	}
}

// FuzzParse checks that no list panics or yields a member out of range, and
// that a list once read keeps its meaning and its one spelling.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "0-3,8\n", "0-31:2/8", "65535", "0-65535:1/2", "3-1", "1,,2", "0-5:3/2", "٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		first, err := bitset.Parse(list)
		if err != nil {
			if !first.IsEmpty() {
				t.Errorf("refused %q, yet read %s", list, first)
			}
			return
		}
		for m := range first.All() {
			if m < 0 || m > bitset.MaxMember {
				t.Fatalf("%q has member %d", list, m)
			}
		}
		second, err := bitset.Parse(first.String())
		if err != nil {
			t.Fatalf("%q prints as %q, which is refused: %v", list, first, err)
		}
		if !second.Equal(first) || second.String() != first.String() {
			t.Errorf("%q prints as %q, which reads as %q", list, first, second)
		}
	})
}

// list256 is the CPU list of one socket of a host with 256 logical CPUs.
const list256 = "0-63,128-191"

func BenchmarkParse(b *testing.B) {
	for name, list := range map[string]string{"ranges": list256, "alternating": "0-255:1/2", "singles": bitset.Of(even(256)...).String()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bitset.Parse(list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkString(b *testing.B) {
	for name, set := range map[string]bitset.Set{"range": bitset.Of(count(0, 255)...), "alternating": bitset.Of(even(256)...)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = set.String()
			}
		})
	}
}

// count returns first..last.
func count(first, last int) []int {
	var n []int
	for i := first; i <= last; i++ {
		n = append(n, i)
	}
	return n
}

// even returns the even numbers below n.
func even(n int) []int {
	var m []int
	for i := 0; i < n; i += 2 {
		m = append(m, i)
	}
	return m
}
