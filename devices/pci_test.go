package devices_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
)

func TestNormalizePCIBusID(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
	}{
		"NVML's eight-digit domain is shortened to four": {"00000000:07:00.0", "0000:07:00.0"},
		"the kernel's form is kept":                      {"0000:4e:00.0", "0000:4e:00.0"},
		"upper case becomes lower":                       {"0000:BD:1F.7", "0000:bd:1f.7"},
		"a missing domain is domain 0":                   {"07:00.0", "0000:07:00.0"},
		"a domain above 16 bits keeps its digits":        {"00010000:07:00.0", "10000:07:00.0"},
		"a bus above 255 is refused":                     {"0000:100:00.0", ""},
		"a device above 31 is refused":                   {"0000:07:20.0", ""},
		"a function above 7 is refused":                  {"0000:07:00.8", ""},
		"a missing function is refused":                  {"0000:07:00", ""},
		"an empty address is refused":                    {"", ""},
		"a sign is refused":                              {"0000:+7:00.0", ""},
		"a fourth field is refused":                      {"0:0000:07:00.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := devices.NormalizePCIBusID(c.text)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("NormalizePCIBusID(%q) = %q, %v; want %q", c.text, got, err, c.want)
			}
		})
	}
}

func TestComparePCIBusIDOrdersByNumber(t *testing.T) {
	want := []string{"0000:07:00.0", "0000:4e:00.0", "0000:4e:00.1", "ffff:01:00.0", "10000:01:00.0"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, devices.ComparePCIBusID)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func FuzzNormalizePCIBusID(f *testing.F) {
	for _, seed := range []string{"00000000:07:00.0", "07:00.0", "10000:BD:1f.7", "0000:07:00", "::.", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := devices.NormalizePCIBusID(text)
		if err != nil {
			return
		}
		twice, err := devices.NormalizePCIBusID(once)
		if err != nil || twice != once {
			t.Errorf("%q became %q, which became %q, %v", text, once, twice, err)
		}
	})
}
