package resource_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

func TestHugepageNames(t *testing.T) {
	for name, size := range map[resource.Name]resource.Bytes{
		"hugepages-1Ki": 1 << 10, "hugepages-64Ki": 64 << 10, "hugepages-2Mi": 2 << 20, "hugepages-512Mi": 512 << 20,
		"hugepages-1Gi": 1 << 30, "hugepages-16Gi": resource.MaxHugepageSize,
	} {
		got, ok, err := name.HugepageSize()
		if got != size || !ok || err != nil {
			t.Errorf("%s reads as %d, %t, %v; want %d", name, got, ok, err, size)
		}
		if printed := resource.Hugepages(size); printed != name {
			t.Errorf("%d prints as %s, want %s", size, printed, name)
		}
	}
}

func TestMIGNames(t *testing.T) {
	for name, profile := range map[resource.Name]string{
		"nvidia.com/mig-1g.5gb":            "1g.5gb",
		"nvidia.com/mig-1g.10gb":           "1g.10gb",
		"nvidia.com/mig-7g.269gb":          "7g.269gb",
		"nvidia.com/mig-1c.3g.40gb":        "1c.3g.40gb",
		"nvidia.com/mig-1g.10gb.me":        "1g.10gb+me",
		"nvidia.com/mig-1c.2g.20gb.me":     "1c.2g.20gb+me",
		"nvidia.com/mig-1g.24gb.gfx":       "1g.24gb+gfx",
		"nvidia.com/mig-1g.24gb.me.all":    "1g.24gb+me.all",
		"nvidia.com/mig-1g.24gb-me":        "1g.24gb-me",
		"nvidia.com/mig-1g.24gb.not.yet.8": "1g.24gb+not.yet.8",
		"nvidia.com/mig-1g.0gb":            "1g.0gb",
		"nvidia.com/mig-1g.10gb.gb":        "1g.10gb+gb",
	} {
		got, ok, err := name.MIGProfile()
		if got != profile || !ok || err != nil {
			t.Errorf("%s reads as %q, %t, %v; want %s", name, got, ok, err, profile)
		}
		if printed := resource.MIG(profile); printed != name {
			t.Errorf("%s prints as %s, want %s", profile, printed, name)
		}
		if err := resource.ValidMIGProfile(profile); err != nil {
			t.Error(err)
		}
	}
}

func TestNamesOfNoFamily(t *testing.T) {
	for _, name := range []resource.Name{
		"", resource.CPU, resource.Cores, resource.Memory, resource.GPU, "hugepages", "Hugepages-2Mi", " hugepages-2Mi",
		"nvidia.com/mig", "nvidia.com/gpu.shared", "amd.com/mig-1g.10gb", "mig-1g.10gb",
	} {
		if size, ok, err := name.HugepageSize(); ok || err != nil || size != 0 {
			t.Errorf("%q is taken for huge pages of %d bytes, %v", string(name), size, err)
		}
		if profile, ok, err := name.MIGProfile(); ok || err != nil || profile != "" {
			t.Errorf("%q is taken for MIG instances of %q, %v", string(name), profile, err)
		}
	}
}

func TestHugepageNamesThatAreRefused(t *testing.T) {
	spelling := func(name string) string {
		return fmt.Sprintf("%q: want a page size as in hugepages-2Mi or hugepages-1Gi", name)
	}
	for name, c := range map[string]struct{ name, want string }{
		"no size":                    {"hugepages-", `"hugepages-": quantity "": not a number`},
		"a word":                     {"hugepages-big", `"hugepages-big": quantity "big": not a number`},
		"an unknown suffix":          {"hugepages-2MB", `"hugepages-2MB": quantity "2MB": unknown suffix "MB" (want m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei)`},
		"a negative size":            {"hugepages--2Mi", `"hugepages--2Mi": quantity "-2Mi": negative`},
		"no bytes":                   {"hugepages-0", spelling("hugepages-0")},
		"less than a KiB":            {"hugepages-512", spelling("hugepages-512")},
		"more than any processor's":  {"hugepages-32Gi", spelling("hugepages-32Gi")},
		"no power of two":            {"hugepages-3Mi", spelling("hugepages-3Mi")},
		"decimal megabytes":          {"hugepages-2M", spelling("hugepages-2M")},
		"another spelling in KiB":    {"hugepages-2048Ki", spelling("hugepages-2048Ki")},
		"another spelling in bytes":  {"hugepages-2097152", spelling("hugepages-2097152")},
		"another spelling by points": {"hugepages-2.0Mi", spelling("hugepages-2.0Mi")},
		"another spelling by a sign": {"hugepages-+2Mi", spelling("hugepages-+2Mi")},
		"another spelling by zeros":  {"hugepages-02Mi", spelling("hugepages-02Mi")},
		"a long text is not told whole": {"hugepages-" + strings.Repeat("1", 90), fmt.Sprintf("%q", "hugepages-"+strings.Repeat("1", 54)+"…") +
			`: quantity "1111111111111111"…: longer than 64 characters`},
	} {
		t.Run(name, func(t *testing.T) {
			size, ok, err := resource.Name(c.name).HugepageSize()
			if size != 0 || !ok || message(err) != c.want {
				t.Errorf("%d, %t, %v; want %s", size, ok, err, c.want)
			}
		})
	}
}

func TestMIGProfilesThatAreRefused(t *testing.T) {
	for name, profile := range map[string]string{
		"nothing":                       "",
		"no slices":                     "10gb",
		"no memory":                     "1g.",
		"no unit of memory":             "1g.10",
		"no digits of memory":           "1g.gb",
		"another unit":                  "1g.10mb",
		"upper case":                    "1G.10GB",
		"zero slices":                   "0g.10gb",
		"ten slices":                    "10g.10gb",
		"zero compute slices":           "0c.1g.10gb",
		"compute slices alone":          "1c.10gb",
		"slices in the wrong order":     "1g.1c.10gb",
		"compute slices twice":          "1c.1c.1g.10gb",
		"an attribute without a sign":   "1g.10gbme",
		"an attribute behind a point":   "1g.10gb.me",
		"a sign alone":                  "1g.10gb+",
		"a minus alone":                 "1g.10gb-",
		"two attributes":                "1g.10gb+me+gfx",
		"two attributes, the other way": "1g.10gb+me-gfx",
		"attributes with a comma":       "1g.10gb+me,gfx",
		"an attribute in upper case":    "1g.10gb+ME",
		"an attribute that ends early":  "1g.10gb+me.",
		"an attribute of points":        "1g.10gb+..",
		"white space":                   "1g.10gb ",
		"white space before":            " 1g.10gb",
		"a slash":                       "1g.10gb+a/b",
		"a longer name than any":        "1g.10gb+" + strings.Repeat("a", 25),
		"bytes that are not UTF-8":      "1g.10gb+\xff",
		"digits of another script":      "١g.10gb",
	} {
		t.Run(name, func(t *testing.T) {
			want := fmt.Sprintf("MIG profile %q: want one as in 1g.10gb, 3g.40gb or 1g.10gb+me", profile)
			if err := resource.ValidMIGProfile(profile); message(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	long := strings.Repeat("1", 1<<20)
	if err := resource.ValidMIGProfile(long); len(message(err)) > 200 {
		t.Errorf("a profile of %d bytes makes a message of %d", len(long), len(message(err)))
	}
}

func TestMIGNamesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ name, want string }{
		"no profile":       {"nvidia.com/mig-", `"nvidia.com/mig-": MIG profile "": want one as in 1g.10gb, 3g.40gb or 1g.10gb+me`},
		"a word":           {"nvidia.com/mig-big", `"nvidia.com/mig-big": MIG profile "big": want one as in 1g.10gb, 3g.40gb or 1g.10gb+me`},
		"a plus":           {"nvidia.com/mig-1g.10gb+me", `"nvidia.com/mig-1g.10gb+me": want the spelling "nvidia.com/mig-1g.10gb.me"`},
		"a point and more": {"nvidia.com/mig-1g.10gb.", `"nvidia.com/mig-1g.10gb.": MIG profile "1g.10gb+": want one as in 1g.10gb, 3g.40gb or 1g.10gb+me`},
		"a longer profile than any": {
			"nvidia.com/mig-1g.10gb." + strings.Repeat("a", 25),
			`"nvidia.com/mig-1g.10gb.` + strings.Repeat("a", 25) + `": MIG profile "1g.10gb+` + strings.Repeat("a", 25) + `": want one as in 1g.10gb, 3g.40gb or 1g.10gb+me`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			profile, ok, err := resource.Name(c.name).MIGProfile()
			if profile != "" || !ok || message(err) != c.want {
				t.Errorf("%q, %t, %v; want %s", profile, ok, err, c.want)
			}
		})
	}
}

func TestEveryProfileHasOneName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		profile := rapid.StringMatching(`([1-9]c\.)?[1-9]g\.[0-9]{1,4}gb([+-][a-z0-9]{1,4}(\.[a-z0-9]{1,4})?)?`).Draw(t, "profile")
		got, ok, err := resource.MIG(profile).MIGProfile()
		if got != profile || !ok || err != nil {
			t.Fatalf("%s prints as %s, which reads as %q, %t, %v", profile, resource.MIG(profile), got, ok, err)
		}
	})
}

// FuzzName checks that no name panics, that no name is of two families, that a
// name that is read is the one that is printed, and that messages are bounded.
func FuzzName(f *testing.F) {
	for _, seed := range []string{
		"cpu", "hugepages-2Mi", "hugepages-1Gi", "hugepages-2048Ki", "hugepages-1e9", "hugepages--1",
		"nvidia.com/mig-1g.10gb", "nvidia.com/mig-1c.3g.40gb.me", "nvidia.com/mig-1g.24gb.me.all", "nvidia.com/mig-1g.24gb-me", "nvidia.com/mig-1g.10gb+me",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := resource.Name(text)
		size, huge, sizeErr := name.HugepageSize()
		profile, mig, profileErr := name.MIGProfile()
		if huge && mig {
			t.Errorf("%q is of two families", text)
		}
		for _, err := range []error{sizeErr, profileErr} {
			if len(message(err)) > 1200 { // two texts of 64 bytes, and a quantity's twice, four characters each, and words
				t.Errorf("a name of %d bytes makes a message of %d", len(text), len(message(err)))
			}
		}
		if huge && sizeErr == nil {
			if printed := resource.Hugepages(size); printed != name {
				t.Errorf("%q is %d bytes, which prints as %q", text, size, string(printed))
			}
			r := resource.Request{Hugepages: size, HugepageSize: size}
			if err := r.Validate(); err != nil {
				t.Errorf("%q cannot be asked for: %v", text, err)
			}
		}
		if mig && profileErr == nil {
			if printed := resource.MIG(profile); printed != name {
				t.Errorf("%q is %q, which prints as %q", text, profile, string(printed))
			}
			r := resource.Request{MIG: 1, MIGProfile: profile}
			if err := r.Validate(); err != nil {
				t.Errorf("%q cannot be asked for: %v", text, err)
			}
		}
		if mig == (profileErr == nil && profile == "") || huge == (sizeErr == nil && size == 0) {
			t.Errorf("%q: %d, %t, %v; %q, %t, %v", text, size, huge, sizeErr, profile, mig, profileErr)
		}
	})
}
