package edit

import (
	"strings"

	"github.com/musterd/muster/coordinator/record"
)

// nouns are the kinds of the keys of operators' objects, by prefix.
var nouns = []struct{ prefix, kind string }{
	{record.TenantsPrefix, "tenant"},
	{record.NamespacesPrefix, "namespace"},
	{Resources.Prefix, Resources.Noun},
	{record.QueuesPrefix, "queue"},
	{record.PriorityClassesPrefix, "priority class"},
}

// Object names the object of a key for people: the kind, and the last part of the key.
func Object(key string) string {
	return KindOf(key) + " " + key[strings.LastIndexByte(key, '/')+1:]
}

// KindOf is the kind of the object of a key; "quota" for each object of quota.
func KindOf(key string) string {
	for _, k := range nouns {
		if strings.HasPrefix(key, k.prefix) {
			return k.kind
		}
	}
	return "quota"
}
