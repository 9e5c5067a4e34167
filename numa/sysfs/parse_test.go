package sysfs

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

func TestRefusesMalformedText(t *testing.T) {
	list := func(text string) error { _, _, err := parseList(text, maxCPU); return err }
	mask := func(text string) error { _, _, err := parseMask(text, maxCPU); return err }
	number := func(text string) error { _, err := parseNumber(text); return err }
	count := func(text string) error { _, err := parseCount(text); return err }
	total := func(text string) error { _, err := parseMemTotal(text); return err }
	row := func(text string) error { _, err := parseDistances(text, 2); return err }
	allowed := func(text string) error { _, _, err := parseAllowed(text, maxCPU); return err }
	tests := map[string]struct {
		parse func(string) error
		text  string
		want  string // "" where the text is good
	}{
		"list of ranges":                {list, "0-3,8", ""},
		"empty list":                    {list, "", ""},
		"list with an empty element":    {list, "0,,1", `""`},
		"list with a stride":            {list, "0-31:2/8", `"31:2/8"`},
		"list that goes back":           {list, "4,3", `"3" does not ascend`},
		"list that repeats itself":      {list, "0-65535,0-65535", "does not ascend"},
		"range that goes back":          {list, "4-3", "does not ascend"},
		"list with a sign":              {list, "+1", "not a number"},
		"list beyond any kernel":        {list, "70000", "not a number in 0..65535"},
		"mask of two words":             {mask, "00000003,0000000f", ""},
		"empty mask":                    {mask, "", "not hexadecimal"},
		"mask with a word of nine":      {mask, "000000001", "not hexadecimal of 32 bits"},
		"unknown number":                {number, "-1", ""},
		"number below -1":               {number, "-2", "not a number"},
		"number above 31 bits":          {number, "2147483648", "not a number"},
		"negative count":                {count, "-1", "not a count"},
		"node's meminfo":                {total, "\nNode 12 MemTotal:  5 kB\n", ""},
		"host's meminfo":                {total, "MemTotal:  5 kB\nMemFree: 1 kB", ""},
		"meminfo in other units":        {total, "MemTotal: 5 MB", "not an amount in kB"},
		"meminfo with a negative":       {total, "MemTotal: -5 kB", "not a number"},
		"meminfo above a pebibyte":      {total, "MemTotal: 1099511627777 kB", "not a number in 0..1099511627776"},
		"meminfo without a total":       {total, "MemFree: 5 kB", "no MemTotal"},
		"row of two distances":          {row, "10 21", ""},
		"row of three distances":        {row, "10 21 21", "3 distances for 2 online nodes"},
		"distance of 0":                 {row, "10 0", "not a number in 1..255"},
		"distance above a SLIT's byte":  {row, "10 256", "not a number in 1..255"},
		"status with allowed CPUs":      {allowed, "Name:\tx\nCpus_allowed_list:\t0-1\n", ""},
		"status without allowed CPUs":   {allowed, "Name:\tx\n", "no Cpus_allowed_list"},
		"status with a damaged CPU set": {allowed, "Cpus_allowed_list:\tff\n", "not a number"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.parse(test.text)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q: error %v, want %q", test.text, err, test.want)
			}
		})
	}
}

func anySet(t *rapid.T) bitset.Set {
	return bitset.Of(rapid.SliceOf(rapid.IntRange(0, 700)).Draw(t, "members")...)
}

func TestListIsReadAsTheKernelPrintsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anySet(t)
		limit := rapid.IntRange(0, 700).Draw(t, "limit")
		got, beyond, err := parseList(want.String(), limit)
		checkWithin(t, want, got, beyond, err, limit)
	})
}

func TestMaskIsReadAsTheKernelPrintsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anySet(t)
		limit := rapid.IntRange(0, 700).Draw(t, "limit")
		bits := new(big.Int)
		for i := range want.All() {
			bits.SetBit(bits, i, 1)
		}
		digits := fmt.Sprintf("%0*x", 8*((bits.BitLen()+31)/32)+8*rapid.IntRange(0, 3).Draw(t, "leading words"), bits)
		if len(digits)%8 != 0 { // no bits and no leading words
			digits = "00000000"
		}
		var words []string
		for i := 0; i < len(digits); i += 8 {
			words = append(words, digits[i:i+8])
		}
		got, beyond, err := parseMask(strings.Join(words, ","), limit)
		checkWithin(t, want, got, beyond, err, limit)
	})
}

// checkWithin compares with the members of want up to limit, one by one.
func checkWithin(t *rapid.T, want, got bitset.Set, beyond bool, err error, limit int) {
	if err != nil {
		t.Fatal(err)
	}
	cut := false
	for i := range 800 {
		cut = cut || i > limit && want.Has(i)
		if got.Has(i) != (i <= limit && want.Has(i)) {
			t.Fatalf("%q up to %d reads as %q", want, limit, got)
		}
	}
	if beyond != cut {
		t.Fatalf("%q up to %d: beyond = %t", want, limit, beyond)
	}
}

func FuzzParsers(f *testing.F) {
	for _, text := range []string{
		"", "0", "0-5,48-53", "0-31:2/8", "65535", "0-65535", "3-1", "00000000,003f0000,0000003f", "-1", "10 21 21 31",
		"\nNode 0 MemTotal:       32489480 kB\n", "MemTotal: 18446744073709551615 kB", "Cpus_allowed_list:\t0-3\n", "\xff", "0-2\n\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, beyond, err := parseList(text, maxCPU); err == nil {
			again, _, err := parseList(s.String(), maxCPU)
			if err != nil || !again.Equal(s) {
				t.Errorf("list %q prints as %q, which reads as %q: %v", text, s, again, err)
			}
			if kernel, err := bitset.Parse(text); err == nil && !beyond && !kernel.Equal(s) {
				t.Errorf("list %q reads as %q, by bitset.Parse as %q", text, s, kernel)
			}
		}
		if s, _, err := parseMask(text, maxNode); err == nil && s.Len() > maxNode+1 {
			t.Errorf("mask %q has %d members", text, s.Len())
		}
		if n, err := parseNumber(text); err == nil && n < -1 {
			t.Errorf("number %q reads as %d", text, n)
		}
		if n, err := parseCount(text); err == nil && n < 0 {
			t.Errorf("count %q reads as %d", text, n)
		}
		if n, err := parseMemTotal(text); err == nil && (n < 0 || n > resource.MaxMemory) {
			t.Errorf("meminfo %q reads as %d", text, n)
		}
		if row, err := parseDistances(text, 4); err == nil && len(row) != 4 {
			t.Errorf("row %q has %d distances", text, len(row))
		}
		if s, _, err := parseAllowed(text, maxCPU); err == nil && s.Len() > maxCPU+1 {
			t.Errorf("status %q has %d members", text, s.Len())
		}
	})
}

// FuzzRead puts any content into any file of a healthy host.
func FuzzRead(f *testing.F) {
	host := twoNodes()
	paths := []string{
		cpuDir + "/present", cpuDir + "/online", cpuDir + "/offline", cpuDir + "/isolated", nodeDir + "/online",
		nodeDir + "/has_memory", nodePath(1, "/cpulist"), nodePath(1, "/meminfo"), nodePath(1, "/distance"),
		nodePath(1, "/hugepages/hugepages-2048kB/nr_hugepages"), cpuPath(2, "/topology/core_cpus_list"),
		cpuPath(2, "/topology/core_id"), cpuPath(2, "/cache/index3/level"), cpuPath(2, "/cache/index3/shared_cpu_list"),
		"proc/self/status", "proc/sys/kernel/hostname", "proc/sys/kernel/random/boot_id",
	}
	for i := range paths {
		f.Add(uint8(i), "")
		f.Add(uint8(i), host[paths[i]])
	}
	f.Add(uint8(0), "0-65535")
	f.Add(uint8(10), "0-7")
	f.Add(uint8(4), "1-9\n")
	f.Fuzz(func(t *testing.T, which uint8, content string) {
		if strings.HasPrefix(content, "-> ") {
			return // the tree's own notation for links
		}
		path := paths[int(which)%len(paths)]
		broken := host.with(tree{path: content}).fs()
		topology, warnings, err := Read(broken)
		switch {
		case (err == nil) != (topology != nil):
			t.Errorf("%s %q: topology %v with error %v", path, content, topology, err)
		case err == nil && topology.Validate() != nil:
			t.Errorf("%s %q: %v", path, content, topology.Validate())
		case len(warnings) > maxWarnings+1:
			t.Errorf("%s %q: %d warnings", path, content, len(warnings))
		}
		ReadHost(broken)
		AllowedCPUs(broken)
	})
}
