package resource

import (
	"fmt"
	"strings"
)

// Name is a resource's name as tenants write it.
type Name string

// Pods is limited by quotas though no unit requests it: the members of a unit are
// counted.
const Pods Name = "pods"

// The resources that Muster allocates itself. Base units: CPU in millicores,
// Cores in physical cores, Memory in bytes, GPU in device-milli (1000 = one
// whole GPU). Hugepages(size) and MIG(profile) return further names.
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

// HugepageSize returns the size of a page where the name is of huge
// pages. ok is false for every other name; the error is for a wrong name: a size
// has a single spelling.
func (n Name) HugepageSize() (size Bytes, ok bool, err error) {
	text, found := strings.CutPrefix(string(n), hugepagesPrefix)
	if !found {
		return 0, false, nil
	}
	bytes, err := ParseQuantity(text, 1)
	if err != nil {
		return 0, true, fmt.Errorf("%q: %w", clip(string(n)), err)
	}
	size = Bytes(bytes)
	if !validPage(size) || Hugepages(size) != n {
		return 0, true, fmt.Errorf("%q: want a page size as in %s or %s", clip(string(n)), Hugepages(2<<20), Hugepages(1<<30))
	}
	return size, true, nil
}

// validPage reports whether a processor can have pages of the size.
func validPage(size Bytes) bool {
	return size >= 1024 && size <= MaxHugepageSize && size&(size-1) == 0
}

// MIG is the name of MIG instances of one profile: "nvidia.com/mig-1g.10gb".
// Its base unit is the instance. The "+" of an attribute (1g.10gb+me) is
// written ".", for names hold none.
func MIG(profile string) Name { return Name(migPrefix + strings.ReplaceAll(profile, "+", ".")) }

// MIGProfile returns the profile where the name is of MIG instances. ok
// is false for every other name; the error is for a wrong name: a profile has
// a single spelling.
func (n Name) MIGProfile() (profile string, ok bool, err error) {
	text, found := strings.CutPrefix(string(n), migPrefix)
	if !found {
		return "", false, nil
	}
	profile = text
	if _, attribute, ok := cutMIGBody(text); ok && strings.HasPrefix(attribute, ".") {
		profile = text[:len(text)-len(attribute)] + "+" + attribute[1:]
	}
	if err := ValidMIGProfile(profile); err != nil {
		return "", true, fmt.Errorf("%q: %w", clip(string(n)), err)
	}
	if name := MIG(profile); name != n {
		return "", true, fmt.Errorf("%q: want the spelling %q", string(n), string(name))
	}
	return profile, true, nil
}

// ValidMIGProfile reports whether text can be a profile's name, as NVIDIA
// forms them: compute slices where they are fewer, slices, memory, and an
// attribute that is there or lacking: "1g.10gb", "1c.3g.40gb", "1g.10gb+me",
// "1g.24gb+me.all", "1g.24gb-me" (go-nvlib, MigProfileInfo.String).
func ValidMIGProfile(text string) error {
	_, attribute, valid := cutMIGBody(text)
	valid = valid && len(text) <= MaxMIGProfile && validMIGAttribute(attribute)
	if !valid {
		return fmt.Errorf("MIG profile %q: want one as in 1g.10gb, 3g.40gb or 1g.10gb+me", clip(text))
	}
	return nil
}

// cutMIGBody splits the text behind "1g.10gb" or "1c.3g.40gb" of its beginning.
func cutMIGBody(text string) (body, rest string, ok bool) {
	rest = text
	for _, unit := range []string{"c.", "g."} {
		if len(rest) > 2 && rest[0] >= '1' && rest[0] <= '9' && rest[1:3] == unit {
			rest = rest[3:]
		} else if unit == "g." {
			return "", text, false
		}
	}
	memory := strings.TrimLeft(rest, "0123456789")
	after, found := strings.CutPrefix(memory, "gb")
	if !found || memory == rest {
		return "", text, false
	}
	return text[:len(text)-len(after)], after, true
}

// validMIGAttribute reports whether text can follow a profile's body: nothing,
// or a sign and words of letters and digits with dots between them.
func validMIGAttribute(text string) bool {
	if text == "" {
		return true
	}
	if text[0] != '+' && text[0] != '-' {
		return false
	}
	for word := range strings.SplitSeq(text[1:], ".") {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

// clip shortens a text from outside for a message.
func clip(text string) string {
	if len(text) > 2*MaxMIGProfile {
		return text[:2*MaxMIGProfile] + "…"
	}
	return text
}
