package resource

import (
	"fmt"
	"strings"
)

// Name is a resource's name as tenants write it.
type Name string

// The resources that Muster allocates itself. Base units: CPU in millicores,
// Cores in physical cores, Memory in bytes, GPU in device-milli (1000 = one
// whole GPU). Hugepages(size) and MIG(profile) name further ones.
const (
	CPU    Name = "cpu"
	Cores  Name = "muster.io/cores"
	Memory Name = "memory"
	GPU    Name = "nvidia.com/gpu"
)

// The beginnings of families of names, as Kubernetes and NVIDIA's device
// plugin write them.
const (
	hugepagesPrefix = "hugepages-"
	migPrefix       = "nvidia.com/mig-"
)

// MaxHugepageSize is the largest page of any processor (POWER, 16 GiB).
const MaxHugepageSize Bytes = 16 << 30

// MaxMIGProfile is the most bytes of a MIG profile's name.
const MaxMIGProfile = 32

// Hugepages is the name of memory in huge pages of one size: "hugepages-2Mi".
// Its base unit is the byte.
func Hugepages(size Bytes) Name { return Name(hugepagesPrefix + FormatBytes(size)) }

// HugepageSize returns the size of a page where the name is that of huge
// pages. ok is false for every other name, error for one that is wrong.
func (n Name) HugepageSize() (size Bytes, ok bool, err error) {
	text, found := strings.CutPrefix(string(n), hugepagesPrefix)
	if !found {
		return 0, false, nil
	}
	bytes, err := ParseQuantity(text, 1)
	if err != nil {
		return 0, true, fmt.Errorf("%q: %w", string(n), err)
	}
	size = Bytes(bytes)
	if size < 1024 || size > MaxHugepageSize || size&(size-1) != 0 || Hugepages(size) != n {
		return 0, true, fmt.Errorf("%q: want a page size as in %s or %s", string(n), Hugepages(2<<20), Hugepages(1<<30))
	}
	return size, true, nil
}

// MIG is the name of MIG instances of one profile: "nvidia.com/mig-1g.10gb".
// Its base unit is the instance. A "+" of the profile (1g.10gb+me) is written
// ".", for names hold none.
func MIG(profile string) Name { return Name(migPrefix + strings.ReplaceAll(profile, "+", ".")) }

// MIGProfile returns the profile where the name is that of MIG instances. ok
// is false for every other name, error for one that is wrong.
func (n Name) MIGProfile() (profile string, ok bool, err error) {
	text, found := strings.CutPrefix(string(n), migPrefix)
	if !found {
		return "", false, nil
	}
	for _, attribute := range []string{"me", "gfx"} {
		if body, cut := strings.CutSuffix(text, "."+attribute); cut {
			text = body + "+" + attribute
			break
		}
	}
	if err := ValidMIGProfile(text); err != nil {
		return "", true, fmt.Errorf("%q: %w", string(n), err)
	}
	return text, true, nil
}

// ValidMIGProfile reports whether text can be a profile's name, as NVIDIA
// forms them: "1g.10gb", "1c.3g.40gb", "1g.10gb+me".
func ValidMIGProfile(text string) error {
	valid := len(text) > 0 && len(text) <= MaxMIGProfile && text[0] >= '1' && text[0] <= '9' && strings.Contains(text, "g.")
	for i := range len(text) {
		c := text[i]
		valid = valid && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '.' || c == '+' || c == '-')
	}
	if !valid {
		return fmt.Errorf("MIG profile %q: want one as in 1g.10gb, 3g.40gb or 1g.10gb+me", clip(text))
	}
	return nil
}

// clip bounds a text of somebody else in a message.
func clip(text string) string {
	if len(text) > 2*MaxMIGProfile {
		return text[:2*MaxMIGProfile] + "…"
	}
	return text
}
