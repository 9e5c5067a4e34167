package cli

import (
	"slices"
	"strings"

	"github.com/musterd/muster/sdk"
)

// auditedObject is the value of --for of audit: a kind as entries have it, and the name of
// one object, "" for all of the kind.
type auditedObject struct {
	resource, name string
	namespaced     bool
}

// furtherAudited are the kinds of entries that muster get does not have.
func furtherAudited() []string {
	return []string{
		"tokens", "bootstraptokens", "nodebans", "authorities", "operatorcertificates", "quotamodes", "featurelevels", "preemptions", "evictions", "consumers", "coordinators", "history", "past", "metrics", "usage", "snapshot", "audit", "whoami",
	}
}

// String implements pflag.Value.
func (o *auditedObject) String() string {
	if o.name == "" {
		return o.resource
	}
	return o.resource + "/" + o.name
}

// Type implements pflag.Value.
func (o *auditedObject) Type() string { return "KIND[/NAME]" }

// Set implements pflag.Value.
func (o *auditedObject) Set(text string) error {
	word, name, named := strings.Cut(text, "/")
	word = strings.ToLower(word)
	*o = auditedObject{name: name}
	if k, found := sdk.KindNamed(word); found {
		o.resource, o.namespaced = k.Plural, k.Namespaced
		if named {
			return kind(k.Name).checkName(name)
		}
		return nil
	}
	further := furtherAudited()
	at := slices.IndexFunc(further, func(plural string) bool {
		return word == plural || word == strings.TrimSuffix(plural, "s") || word+"s" == strings.Replace(plural, "ies", "ys", 1)
	})
	switch {
	case at < 0:
		return usagef("unknown kind %q: want one of %s", word, strings.Join(append(plurals(allKinds()), further...), ", "))
	case named && name == "":
		return usagef("want a name behind the slash, or the kind alone")
	}
	o.resource = further[at]
	return nil
}
