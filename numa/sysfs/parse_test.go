package sysfs

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/resource/bitset"
)

func TestRefusesMalformedText(t *testing.T) {
	list := func(text string) error { _, _, err := parseList(text, maxCPU); return err }
	mask := func(text string) error { _, _, err := parseMask(text, maxCPU); return err }
	number := func(text string) error { _, err := parseNumber(text); return err }
	count := func(text string) error { _, err := parseCount(text); return err }
	total := func(text string) error { _, err := parseMemTotal(text); return err }
	row := func(text string) error { _, err := parseDistances(text, 2); return err }
	allowed := func(text string) error { _, _, err := parseAllowed(text, "Cpus_allowed_list", maxCPU); return err }
	pages := func(text string) error { _, err := parseHugePagesTotal(text); return err }
	pageSize := func(text string) error { _, err := parseHugePageSize(text); return err }
	stat := func(text string) error { _, err := parseStat(text, maxCPU); return err }
	isolcpus := func(text string) error { _, _, err := parseIsolcpus(text, maxCPU); return err }
	tests := map[string]struct {
		parse func(string) error
		text  string
		want  string // "" where the text is good
	}{
		"list of ranges":                {list, "0-3,8", ""},
		"empty list":                    {list, "", ""},
		"list with an empty element":    {list, "0,,1", `""`},
		"list with a stride":            {list, "0-31:2/8", `"31:2/8"`},
		"list that does not ascend":     {list, "4,3", ""},
		"list that repeats itself":      {list, "0-65535,0-65535", "0 is named twice"},
		"range that goes back":          {list, "4-3", "goes backwards"},
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
		"pages of a node's meminfo":     {pages, "Node 0 HugePages_Total:    12\n", ""},
		"pages with a unit":             {pages, "HugePages_Total: 12 kB", "not a count"},
		"page size":                     {pageSize, "Hugepagesize:     4096 kB\n", ""},
		"page size of nothing":          {pageSize, "Hugepagesize: 0 kB", "not an amount in kB"},
		"no page size":                  {pageSize, "HugePages_Total: 1", "not an amount in kB"},
		"stat of two CPUs":              {stat, "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n", ""},
		"stat of no CPU":                {stat, "cpu  1 2\nintr 5\n", "no line of a CPU"},
		"isolated CPUs":                 {isolcpus, "ro isolcpus=2-3,6 quiet", ""},
		"isolated CPUs with flags":      {isolcpus, "isolcpus=nohz,domain,managed_irq,2-31:2/8", ""},
		"flags without isolated CPUs":   {isolcpus, "isolcpus=nohz,domain", "not a list"},
		"isolated CPUs of no list":      {isolcpus, "isolcpus=2-x", `"2-x"`},
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

func TestListIsReadAsTheKernelPrintsItInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anySet(t)
		limit := rapid.IntRange(0, 700).Draw(t, "limit")
		elements := rapid.Permutation(strings.Split(want.String(), ",")).Draw(t, "elements")
		got, beyond, err := parseList(strings.Join(elements, ","), limit)
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

func TestReadsIsolatedCPUsOfACommandLine(t *testing.T) {
	tests := map[string]struct {
		cmdline, want string
		found         bool
	}{
		"none":                                    {"ro quiet nohz_full=1-3", "", false},
		"a list":                                  {"ro isolcpus=2-3,6", "2-3,6", true},
		"a list with strides":                     {"isolcpus=0-15:2/8", "0-1,8-9", true},
		"flags with domain":                       {"isolcpus=nohz,domain,2-3", "2-3", true},
		"flags without domain isolate nothing":    {"isolcpus=nohz,managed_irq,2-3", "", true},
		"given twice, both are kept":              {"isolcpus=2 isolcpus=4", "2,4", true},
		"CPUs beyond any bound are left out":      {"isolcpus=3,8190-8195", "3,8190-8191", true},
		"another parameter that ends in isolcpus": {"xisolcpus=2", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, found, err := parseIsolcpus(test.cmdline, maxCPU)
			if err != nil || found != test.found || got.String() != test.want {
				t.Errorf("%q: %q, %t, %v, want %q, %t", test.cmdline, got, found, err, test.want, test.found)
			}
		})
	}
}
