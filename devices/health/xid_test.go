package health_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/musterd/muster/devices/health"
)

func TestVerdicts(t *testing.T) {
	type verdict struct {
		effect health.Effect
		reset  bool
	}
	for name, c := range map[string]struct {
		numbers []uint64
		want    verdict
	}{
		"programs' faults, and what the device plugin takes for such": {[]uint64{11, 13, 25, 31, 43, 45, 68, 69, 137}, verdict{health.Application, false}},
		"decoders fail on their input":                                {[]uint64{82, 83, 89, 96, 105}, verdict{health.Application, false}},
		"test messages and summaries of others":                       {[]uint64{14, 106, 107, 154, 171, 172}, verdict{health.Notice, false}},
		"corrected errors of the link to the CPU":                     {[]uint64{121}, verdict{health.Notice, false}},
		"what the vendor lets pass, but wants to hear of":             {[]uint64{38, 44, 92, 157}, verdict{health.Watch, false}},
		"a remapped row works on until the reset":                     {[]uint64{63}, verdict{health.Watch, true}},
		"engines, and buses":                                          {[]uint64{32, 39, 41, 80, 109, 135, 144, 150}, verdict{health.Suspicious, false}},
		"a link, which may be the neighbour's fault":                  {[]uint64{74}, verdict{health.Suspicious, true}},
		"a link that a neighbour took down":                           {[]uint64{155}, verdict{health.Suspicious, false}},
		"a contained error":                                           {[]uint64{94}, verdict{health.Suspicious, true}},
		"what needs a reset":                                          {[]uint64{46, 48, 54, 62, 64, 79, 95, 110, 119, 120, 136, 140, 143, 151, 156, 158}, verdict{health.Fatal, true}},
		"a fatal timeout of the bus":                                  {[]uint64{167}, verdict{health.Fatal, false}},
		"what nobody knows":                                           {[]uint64{0, 1, 61, 73, 173, 999, math.MaxUint64}, verdict{health.Suspicious, false}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range c.numbers {
				if v := health.XID(n); (verdict{v.Effect, v.Reset}) != c.want {
					t.Errorf("XID %d is %s, reset %t; want %s, %t", n, v.Effect, v.Reset, c.want.effect, c.want.reset)
				}
			}
		})
	}
}

func TestTheCatalogAscendsAndAgreesWithXID(t *testing.T) {
	last, count := uint64(0), 0
	for number, v := range health.Catalog() {
		if number <= last {
			t.Errorf("XID %d follows %d", number, last)
		}
		if got := health.XID(number); got != v || v.Unknown() {
			t.Errorf("XID %d is %+v, in the catalogue %+v", number, got, v)
		}
		last = number
		count++
	}
	for number := range uint64(1000) {
		if !health.XID(number).Unknown() {
			count--
		}
	}
	if count != 0 {
		t.Errorf("the catalogue has %d numbers more than XID", count)
	}
	for number := range health.Catalog() { // a caller may stop
		if number > 8 {
			t.Errorf("went on to XID %d", number)
		}
		break
	}
}

// TestClassesFollowTheVendorsWords holds the rule that docs/health.md states,
// and its exceptions.
func TestClassesFollowTheVendorsWords(t *testing.T) {
	type words struct {
		effect health.Effect
		reset  bool
	}
	rules := map[string]words{ // by the beginning of the immediate action
		"RESET_GPU": {health.Fatal, true}, "RESTART_BM": {health.Fatal, true}, "RESTART_VM": {health.Fatal, true}, "CHECK_MECHANICALS": {health.Fatal, true},
		"RESTART_APP / CHECK_APP": {health.Application, false}, "RESTART_APP / WORKFLOW": {health.Application, false}, "RESTART_APP / CONTACT_SUPPORT": {health.Suspicious, false},
		"IGNORE / CHECK_APP": {health.Application, false}, "IGNORE / IGNORE": {health.Notice, false}, "IGNORE / INVESTIGATE_SW": {health.Notice, false}, "IGNORE / CONTACT_SUPPORT": {health.Watch, false},
	}
	excepted := map[uint64]bool{
		14: true, 93: true, 121: true, 43: true, 63: true, 32: true, 80: true, 68: true, 109: true, 155: true,
		82: true, 83: true, 84: true, 88: true, 89: true,
	}
	for n := uint64(96); n <= 105; n++ {
		excepted[n] = true
	}
	for number, v := range health.Catalog() {
		word, found := strings.CutPrefix(v.Source, "Xid Catalog: ")
		if !found {
			t.Errorf("XID %d has the source %q", number, v.Source)
		}
		for beginning, want := range rules {
			if !strings.HasPrefix(word, beginning) {
				continue
			}
			follows := words{v.Effect, v.Reset} == want
			if follows == excepted[number] {
				t.Errorf("XID %d: %s, reset %t for %q: an exception: %t", number, v.Effect, v.Reset, word, excepted[number])
			}
			if !follows && v.Why == "" && !strings.Contains(v.Source, "device-plugin") {
				t.Errorf("XID %d is an exception without a reason", number)
			}
		}
		if strings.Contains(v.Source, "device-plugin") && v.Effect >= health.Fatal {
			t.Errorf("XID %d taints at once, which the device plugin takes for a program's fault", number)
		}
	}
}

func TestVerdictsReadWellInAReason(t *testing.T) {
	for number, v := range health.Catalog() {
		text := fmt.Sprintf("on probation after XID %d: %s; needs a reset", number, v.Name)
		if v.Name == "" || len(text) > health.MaxReason/2+20 || strings.Contains(v.Name, "|") {
			t.Errorf("%q has %d bytes", text, len(text))
		}
		if v.Reset && v.Effect < health.Watch {
			t.Errorf("XID %d: %s, yet needs a reset", number, v.Effect)
		}
	}
	for effect, name := range map[health.Effect]string{health.Application: "application", health.Fatal: "fatal", 5: "unknown"} {
		if effect.String() != name {
			t.Errorf("%d prints as %s, want %s", effect, effect, name)
		}
	}
}
