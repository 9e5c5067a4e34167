package resource_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

func TestParseQuantity(t *testing.T) {
	const most = math.MaxInt64
	for name, c := range map[string]struct {
		text  string
		scale int64
		want  int64
	}{
		"a whole number is scaled":            {"8", 1000, 8000},
		"a fraction is scaled":                {"1.5", 1000, 1500},
		"m is a thousandth":                   {"8000m", 1000, 8000},
		"k is 10^3":                           {"2k", 1, 2_000},
		"M is 10^6":                           {"2M", 1, 2_000_000},
		"G is 10^9":                           {"2G", 1, 2_000_000_000},
		"T is 10^12":                          {"2T", 1, 2_000_000_000_000},
		"P is 10^15":                          {"2P", 1, 2_000_000_000_000_000},
		"E is 10^18":                          {"2E", 1, 2_000_000_000_000_000_000},
		"Ki is 2^10":                          {"2Ki", 1, 2 << 10},
		"Mi is 2^20":                          {"2Mi", 1, 2 << 20},
		"Gi is 2^30":                          {"2Gi", 1, 2 << 30},
		"Ti is 2^40":                          {"2Ti", 1, 2 << 40},
		"Pi is 2^50":                          {"2Pi", 1, 2 << 50},
		"Ei is 2^60":                          {"2Ei", 1, 2 << 60},
		"a fraction of a binary unit":         {"0.5Gi", 1, 1 << 29},
		"an exponent":                         {"1e3", 1, 1000},
		"an exponent in upper case":           {"1E3", 1, 1000},
		"an exponent with a plus":             {"1e+3", 1, 1000},
		"a negative exponent":                 {"1500e-3", 1000, 1500},
		"1E is exa and no exponent":           {"1E", 1, 1_000_000_000_000_000_000},
		"zero":                                {"0", 1000, 0},
		"zero with a minus":                   {"-0", 1000, 0},
		"zero with many places":               {"0.000", 1000, 0},
		"a plus sign":                         {"+4", 1, 4},
		"a point before the digits":           {".5", 1000, 500},
		"a point after the digits":            {"5.", 1000, 5000},
		"leading zeros are base ten":          {"010", 1, 10},
		"a part of a unit rounds up":          {"0.0001", 1000, 1},
		"just above a whole number rounds up": {"1.0000000000000000000001", 1, 2},

		"milli of an indivisible thing rounds up":   {"1m", 1, 1},
		"the least exponent rounds up":              {"1e-18", 1000, 1},
		"the greatest amount":                       {"9223372036854775807", 1, most},
		"the greatest amount in millis":             {"9223372036854775807m", 1000, most},
		"many digits that come to little":           {"1" + strings.Repeat("0", 17) + "e-17", 1, 1},
		"the longest text that is read":             {"0." + strings.Repeat("0", 61) + "1", 1, 1},
		"a fraction just below the limit rounds up": {"9223372036854775806.5", 1, most},
		"a sum of parts is rounded once":            {"0.1Ki", 10, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resource.ParseQuantity(c.text, c.scale)
			if err != nil || got != c.want {
				t.Errorf("ParseQuantity(%q, %d) = %d, %v; want %d", c.text, c.scale, got, err, c.want)
			}
		})
	}
}

func TestParseQuantityShowsWhatItRefuses(t *testing.T) {
	const suffixes = " (want m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei)"
	notNumber := func(text string) string { return fmt.Sprintf("quantity %q: not a number", text) }
	unknown := func(text, suffix string) string {
		return fmt.Sprintf("quantity %q: unknown suffix %q", text, suffix) + suffixes
	}
	exponent := func(text, exp string) string {
		return fmt.Sprintf("quantity %q: exponent %q is not a number in -18..18", text, exp)
	}
	tooLarge := func(text string) string { return fmt.Sprintf("quantity %q: larger than 9223372036854775807", text) }
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                        {"", notNumber("")},
		"white space":                    {" ", notNumber(" ")},
		"white space before":             {" 8", notNumber(" 8")},
		"white space after":              {"8 ", unknown("8 ", " ")},
		"white space before the suffix":  {"8 Gi", unknown("8 Gi", " Gi")},
		"a word":                         {"lots", notNumber("lots")},
		"a suffix alone":                 {"Gi", notNumber("Gi")},
		"an exponent alone":              {"e3", notNumber("e3")},
		"a plus alone":                   {"+", notNumber("+")},
		"a minus alone":                  {"-", notNumber("-")},
		"a point alone":                  {".", notNumber(".")},
		"a sign and a point":             {"+.", notNumber("+.")},
		"two signs":                      {"+-1", notNumber("+-1")},
		"a sign after the digits":        {"1-", notNumber("1-")},
		"a difference":                   {"2-1", notNumber("2-1")},
		"two points":                     {"1.2.3", notNumber("1.2.3")},
		"a fraction":                     {"1/3", unknown("1/3", "/3")},
		"a hexadecimal number":           {"0x10", unknown("0x10", "x10")},
		"an underscore":                  {"1_000", unknown("1_000", "_000")},
		"a comma":                        {"1,5", unknown("1,5", ",5")},
		"infinity":                       {"Inf", notNumber("Inf")},
		"not a number by its name":       {"NaN", notNumber("NaN")},
		"digits of another script":       {"٣", notNumber("٣")},
		"a suffix of another script":     {"5µ", unknown("5µ", "µ")},
		"a suffix in the wrong case":     {"5K", unknown("5K", "K")},
		"a binary suffix in lower case":  {"5gi", unknown("5gi", "gi")},
		"a suffix with a unit":           {"5GiB", unknown("5GiB", "GiB")},
		"two suffixes":                   {"5kM", unknown("5kM", "kM")},
		"an exponent without digits":     {"1e", exponent("1e", "")},
		"an exponent and a suffix":       {"1e3k", exponent("1e3k", "3k")},
		"an exponent with an underscore": {"1e1_0", exponent("1e1_0", "1_0")},
		"a fractional exponent":          {"1e1.5", exponent("1e1.5", "1.5")},
		"an exponent too great":          {"1e19", exponent("1e19", "19")},
		"an exponent too small":          {"1e-19", exponent("1e-19", "-19")},
		"an exponent beyond 64 bits":     {"0e99999999999999999999", exponent("0e99999999999999999999", "99999999999999999999")},
		"a negative number":              {"-1", `quantity "-1": negative`},
		"a small negative number":        {"-0.0001m", `quantity "-0.0001m": negative`},
		"one more than the greatest":     {"9223372036854775808", tooLarge("9223372036854775808")},
		"a rounding over the greatest":   {"9223372036854775807.1", tooLarge("9223372036854775807.1")},
		"a suffix over the greatest":     {"8Ei", tooLarge("8Ei")},
		"an exponent over the greatest":  {"10e18", tooLarge("10e18")},
		"a text too long":                {strings.Repeat("1", 65), `quantity "1111111111111111"…: longer than 64 characters`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resource.ParseQuantity(c.text, 1)
			if err == nil || err.Error() != c.want || got != 0 {
				t.Errorf("ParseQuantity(%q) = %d, %v; want 0 and %s", c.text, got, err, c.want)
			}
		})
	}
}

// TestAFractionOfZeroChangesNothing compares the arithmetic of whole numbers with
// the exact arithmetic of fractions.
func TestAFractionOfZeroChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[+]?[0-9]{1,20}`).Draw(t, "digits")
		suffix := rapid.SampledFrom([]string{"", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e0", "e3", "e-3", "E18"}).Draw(t, "suffix")
		scale := rapid.SampledFrom([]int64{1, 1000}).Draw(t, "scale")
		whole, err := resource.ParseQuantity(digits+suffix, scale)
		want, wantErr := resource.ParseQuantity(digits+".0"+suffix, scale)
		if whole != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("%s%s times %d is %d (%v), want %d (%v)", digits, suffix, scale, whole, err, want, wantErr)
		}
	})
}

func TestScaleCanOverflowToo(t *testing.T) {
	if got, err := resource.ParseQuantity("9223372036854776", 1000); err == nil {
		t.Errorf("9223372036854776 times 1000 is read as %d", got)
	}
}

func TestParseAmountUsesTheResourcesBaseUnit(t *testing.T) {
	for name, c := range map[string]struct {
		resource resource.Name
		text     string
		want     int64
		wantErr  string
	}{
		"CPUs are counted in millicores":       {resource.CPU, "1.5", 1500, ""},
		"GPUs are counted in millis":           {resource.GPU, "250m", 250, ""},
		"memory is counted in bytes":           {resource.Memory, "32Gi", 32 << 30, ""},
		"anything else is counted in itself":   {"pods", "3", 3, ""},
		"cores are counted in cores":           {resource.Cores, "8", 8, ""},
		"huge pages are counted in bytes":      {resource.Hugepages(2 << 20), "1Gi", 1 << 30, ""},
		"MIG instances are counted in pieces":  {resource.MIG("1g.10gb"), "7", 7, ""},
		"a fault names the resource":           {resource.CPU, "many", 0, `cpu: quantity "many": not a number`},
		"no limit is not an amount":            {resource.GPU, "unlimited", 0, `nvidia.com/gpu: quantity "unlimited": not a number`},
		"a negative amount names resource":     {resource.Memory, "-1Gi", 0, `memory: quantity "-1Gi": negative`},
		"a milli-byte is rounded up to a byte": {resource.Memory, "1m", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resource.ParseAmount(c.resource, c.text)
			if message(err) != c.wantErr || got != c.want {
				t.Errorf("ParseAmount(%s, %q) = %d, %v; want %d, %s", c.resource, c.text, got, err, c.want, c.wantErr)
			}
		})
	}
}

func TestFormatAmount(t *testing.T) {
	for name, c := range map[string]struct {
		resource resource.Name
		amount   int64
		want     string
	}{
		"whole CPUs are whole":                {resource.CPU, 8000, "8"},
		"parts of CPUs are millis":            {resource.CPU, 1500, "1500m"},
		"no CPU":                              {resource.CPU, 0, "0"},
		"a missing CPU is negative":           {resource.CPU, -1000, "-1"},
		"a missing part is negative":          {resource.CPU, -1, "-1m"},
		"whole GPUs are whole":                {resource.GPU, 2000, "2"},
		"a share of a GPU is millis":          {resource.GPU, 250, "250m"},
		"memory is in the largest exact unit": {resource.Memory, 32 << 30, "32Gi"},
		"huge pages are written as memory":    {resource.Hugepages(2 << 20), 6 << 20, "6Mi"},
		"a huge page is in its largest unit":  {resource.Hugepages(1 << 30), 2 << 30, "2Gi"},
		"missing huge pages are negative":     {resource.Hugepages(2 << 20), -2 << 20, "-2Mi"},
		"a name near huge pages is no memory": {"hugepages", 1 << 20, "1048576"},
		"cores are whole":                     {resource.Cores, 1500, "1500"},
		"MIG instances are whole":             {resource.MIG("1g.10gb"), 2000, "2000"},
		"no limit of huge pages":              {resource.Hugepages(2 << 20), resource.Unlimited, "unlimited"},
		"no CPU limit":                        {resource.CPU, resource.Unlimited, "unlimited"},
		"no memory limit":                     {resource.Memory, resource.Unlimited, "unlimited"},
		"anything else is itself":             {"pods", 1500, "1500"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resource.FormatAmount(c.resource, c.amount); got != c.want {
				t.Errorf("FormatAmount(%s, %d) = %q, want %q", c.resource, c.amount, got, c.want)
			}
		})
	}
}

func TestFormatBytes(t *testing.T) {
	for bytes, want := range map[resource.Bytes]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1Ki", 1025: "1025", 1536: "1536", 3 << 19: "1536Ki", 5 << 20: "5Mi", 1 << 30: "1Gi",
		1024 << 30: "1Ti", 7 << 50: "7Pi", 4 << 60: "4Ei", -1 << 30: "-1Gi", math.MaxInt64: "9223372036854775807", math.MinInt64: "-8Ei",
	} {
		if got := resource.FormatBytes(bytes); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", int64(bytes), got, want)
		}
	}
}

func TestAFormattedAmountReadsBackAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]resource.Name{resource.CPU, resource.Cores, resource.Memory, resource.Hugepages(2 << 20), resource.GPU, resource.MIG("1g.10gb"), "pods"}).Draw(t, "resource")
		whole := rapid.SampledFrom([]int64{1, 1000, 1 << 10, 1 << 30, 1 << 50}).Draw(t, "multiple of")
		amount := rapid.Int64Range(0, (resource.Unlimited-1)/whole).Draw(t, "count") * whole
		text := resource.FormatAmount(name, amount)
		got, err := resource.ParseAmount(name, text)
		if err != nil || got != amount {
			t.Fatalf("%s: %d prints as %q, which reads as %d, %v", name, amount, text, got, err)
		}
	})
}

// FuzzParseQuantity checks that no text panics, yields a negative amount or is
// read although too long, and that a greater scale never yields less.
func FuzzParseQuantity(f *testing.F) {
	for _, seed := range []string{"8", "1.5", "8000m", "32Gi", "1e3", "1E", "-1", "e3", ".5", "1_000", "8Ei", "5µ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		one, err := resource.ParseQuantity(text, 1)
		if err != nil {
			if one != 0 {
				t.Errorf("%q is refused, yet read as %d", text, one)
			}
			if len(err.Error()) > 640 { // 64 bytes twice, four characters each, and words
				t.Errorf("a text of %d bytes makes a message of %d", len(text), len(err.Error()))
			}
			return
		}
		if one < 0 || len(text) > 64 {
			t.Fatalf("%q is read as %d", text, one)
		}
		milli, err := resource.ParseQuantity(text, 1000)
		if err != nil {
			return // too large in thousandths
		}
		// one = ceil(q) and milli = ceil(1000 q), so 1000(one-1) < milli <= 1000 one.
		if milli > resource.SaturatingMul(one, 1000) || (one > 0 && milli <= resource.SaturatingMul(one-1, 1000)) {
			t.Errorf("%q is %d whole and %d milli", text, one, milli)
		}
		again, err := resource.ParseQuantity(resource.FormatBytes(resource.Bytes(one)), 1)
		if err != nil || again != one {
			t.Errorf("%q is %d, which reads back as %d, %v", text, one, again, err)
		}
	})
}

func BenchmarkParseQuantity(b *testing.B) {
	for _, text := range []string{"8", "8000m", "32Gi"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := resource.ParseQuantity(text, 1000); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// message is an error's text, "" for nil.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
