package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

// wrong is a value that a field must refuse, and the form in which the refusal
// shows the value.
type wrong struct {
	value any
	shown string
}

// tooLong is longer than any name, selector or reason may be.
var tooLong = strings.Repeat("z", 5000)

// wrongTypes are values of other types than the field's.
func wrongTypes(f Field) []wrong {
	text, list, object := wrong{"zzz", "zzz"}, wrong{[]any{"zzz"}, "array"}, wrong{map[string]any{"zzz": 7}, "object"}
	number, truth := wrong{77, "77"}, wrong{true, "true"}
	switch {
	case strings.HasPrefix(f.Type, "list"):
		return []wrong{text, number, truth, object}
	case f.Type == "object", strings.HasPrefix(f.Type, "map"):
		return []wrong{text, number, truth, list}
	case f.Type == "boolean":
		return []wrong{text, number, list, object}
	case f.Type == "integer":
		return []wrong{
			text, truth, list, object, {1.5, "1.5"}, {"NaN", "NaN"}, {json.Number("1e99"), "1e99"},
			{json.Number("99999999999999999999"), "99999999999999999999"},
		}
	}
	return []wrong{truth, list, object}
}

// wrongByType are values of the field's own type that its format, its range or its
// values exclude.
func wrongByType(t *testing.T, k Kind, f Field) []wrong {
	t.Helper()
	switch {
	case checkedLater[k.Name+" "+f.Path] != "":
		return nil
	case f.Values != nil:
		return []wrong{{listed(f, "nonsense"), "nonsense"}}
	case f.Range != "":
		var all []wrong
		for _, b := range bounds(t, f) {
			if !b.within {
				all = append(all, wrong{b.value, fmt.Sprint(b.value)})
			}
		}
		if f.Type == "duration" {
			all = append(all, wrong{"soon", "soon"}, wrong{"NaN", "NaN"}, wrong{"9", "9"}, wrong{tooLong, "zzz"})
		}
		return all
	}
	amounts := []wrong{{"lots", "lots"}, {"-1", "-1"}, {"NaN", "NaN"}, {"1e99", "1e99"}, {"99999Ei", "99999Ei"}, {tooLong, "zzz"}}
	switch f.Type {
	case "quantity":
		return amounts
	case "map of quantity":
		var all []wrong
		for _, a := range amounts {
			all = append(all, wrong{map[string]any{"cpu": a.value}, a.shown})
		}
		return all
	}
	return nil
}

// pair is a map with one entry.
func pair(key, value string) map[string]any { return map[string]any{key: value} }

// many is a map with more entries than any field may have.
func many() map[string]any {
	m := map[string]any{}
	for i := range api.MaxAnnotations + 1 {
		m[fmt.Sprintf("k%d", i)] = "v"
	}
	return m
}

var (
	wrongNames  = []wrong{{"Zzz!", "Zzz!"}, {"a/b", "a/b"}, {"a\nb", `a\nb`}, {tooLong, "zzz"}}
	wrongLabels = []wrong{{pair("zzz!", "a"), "zzz!"}, {pair("a", "zzz!"), "zzz!"}, {pair("a", tooLong), "zzz"}, {many(), "257"}}
	wrongNotes  = []wrong{{pair("zzz!", "a"), "zzz!"}, {many(), "257"}, {pair("a", strings.Repeat("z", 300<<10)), "307201"}}
	wrongLines  = []wrong{{tooLong, "5000"}, {"a\nb", `a\nb`}}
	wrongKeys   = []wrong{{"zzz!", "zzz!"}, {tooLong, "zzz"}, {"/a", "/a"}}
	tooWordy    = []wrong{{tooLong, "5000"}}
	wrongGroups = []wrong{{pair("zzz!", "a"), "zzz!"}, {pair("company", ""), "empty"}}
	wrongLists  = []wrong{{[]any{"zzz!"}, "zzz!"}, {[]any{tooLong}, "zzz"}}
)

// wrongCounts and wrongSizes are no count quotas.
var (
	wrongCounts = []wrong{{-1, "-1"}, {10_000_001, "10000001"}}
	wrongSizes  = []wrong{{-1, "-1"}, {1<<30 + 1, "1073741825"}}
)

// wrongByMeaning are values that the meaning of a field excludes, by the end of its
// path, the longest end first.
var wrongByMeaning = map[string][]wrong{
	"metadata.name": wrongNames, "metadata.namespace": wrongNames, "metadata.labels": wrongLabels, "metadata.annotations": wrongNotes,
	"dependencies.job": append([]wrong{{"", "required"}}, wrongNames...),
	"spec.queue":       wrongNames, "spec.priorityClass": wrongNames, "targetAllocation": wrongNames, "groupId": wrongNames, "subgroup.name": wrongNames,
	"nodeSelector": wrongLabels, "BootstrapToken spec.labels": append([]wrong{{pair("nvidia.com/gpu", "1"), "nvidia.com/gpu"}}, wrongLabels...),
	"topologyKey": wrongKeys, "labelSelector.matchLabels": wrongLabels,
	"matchExpressions.key": wrongKeys, "matchExpressions.values": wrongLists, "tolerations.key": wrongKeys, "tolerations.value": {{"zzz!", "zzz!"}, {tooLong, "zzz"}},
	"spec.signal": {{"KILL", "KILL"}, {"usr1", "usr1"}},
	"gpu.model":   {{tooLong, "5000"}}, "quota.groups": wrongGroups, "QuotaBinding spec.groups": wrongGroups,
	"reason": tooWordy, "initiatedBy": tooWordy, "NodeBan spec.reason": append([]wrong{{"a\nb", "U+000A"}}, tooWordy...),
	"spec.hard": {{pair("zzz!", "1"), "zzz!"}}, "spec.soft": {{pair("zzz!", "1"), "zzz!"}}, "resources.requests": {{pair("zzz!", "1"), "zzz!"}}, "resources.limits": {{pair("zzz!", "1"), "zzz!"}},
	"QuotaTree spec.resourceNames": {{[]any{""}, "without a name"}},
	"QuotaForest spec.trees":       {{[]any{"zzz!"}, "zzz!"}, {[]any{"company", "company"}, "company"}},
	"QuotaBinding spec.forest":     wrongNames,
	"Tenant spec.displayName":      wrongLines, "Tenant spec.owner": wrongLines, "Tenant spec.contacts": {{[]any{""}, "empty"}, {[]any{tooLong}, "5000"}},
	"Resource metadata.name": {{"zzz!", "zzz!"}, {"a/b/c", "a/b/c"}, {tooLong, "zzz"}}, "Resource spec.displayName": wrongLines, "Resource spec.unit": wrongLines,
	"PriorityClass metadata.name": {{"Zzz", "Zzz"}, {"system-zzz", "system-zzz"}}, "PriorityClass spec.value": {{-1, "-1"}, {1_000_000_001, "1000000001"}}, "PriorityClass spec.description": {{"a\nb", "a"}},
	"Queue metadata.name": {{"Zzz", "Zzz"}, {tooLong, "zzz"}}, "Queue spec.maxRunningMembers": {{-1, "-1"}}, "Queue spec.maxWaitingMembers": {{-1, "-1"}},
	"Resource spec.rank":    {{-1, "-1"}, {32768, "32768"}},
	"Namespace spec.tenant": wrongNames, "Namespace spec.defaultQueue": wrongNames, "Namespace spec.priorityCeiling": {{-1, "-1"}, {1_000_000_001, "1000000001"}},
	"Namespace spec.roleCeilings": {{map[string]any{"viewer": 1}, "viewer"}, {map[string]any{"editor": -1}, "-1"}, {map[string]any{"admin": 1_000_000_001}, "1000000001"}},
	"limits.allocations":          wrongCounts, "limits.jobs": wrongCounts, "limits.waitingUnits": wrongCounts, "limits.annotationBytes": wrongSizes, "limits.documentBytes": wrongSizes,
	"Tenant spec.requestsPerMinute": {{-1, "-1"}, {10_000_001, "10000001"}},
	"Consumer spec.id":              {{"", "missing"}}, "Consumer spec.trees.treeName": {{"", "missing"}},
	"BootstrapToken spec.nodes": {{"", "empty"}}, "labelSelector": {{" ", "an empty selector"}},
	"RoleBinding spec.tenant": wrongNames, "RoleBinding spec.namespaces": wrongLists, "RoleBinding spec.subjects.name": wrongLines,
	"AccessToken spec.user": append([]wrong{{" ", "required"}, {"Admin", "Admin"}, {"system:x", "system:x"}, {"/etc/passwd", "/etc/passwd"}}, wrongLines...), "AccessToken spec.tenant": wrongNames, "AccessToken spec.namespaces": wrongLists,
	"AccessToken spec.priorityCeiling": {{-1, "-1"}, {1_000_000_001, "1000000001"}}, "AccessToken spec.description": wrongLines, "AccessToken spec.request": {{"zzz", "zzz"}, {"-----BEGIN CERTIFICATE-----", "BEGIN CERTIFICATE-----"}},
	"QuotaRename from": {{"", "from"}}, "QuotaRename to": {{"zzz!", "zzz!"}},
	"QuotaModePatch reason": wrongLines, "FeatureLevelPatch level": {{0, "0"}, {-1, "-1"}},
	"BoostOptions reason": {{tooLong, "5000"}}, "BoostOptions approvedBy": {{tooLong, "5000"}}, "BoostOptions newPriority": {{0, "0"}, {1_000_000_001, "1000000001"}}, "BoostOptions duration": {{"0s", "0s"}, {"169h", "169h"}, {"soon", "soon"}},
	"spec.command": {{[]any{"a\x00"}, "zero byte"}, {[]any{""}, "empty"}}, "spec.args": {{[]any{"a\x00"}, "zero byte"}},
	"env.name": {{"A B", "A B"}, {"MUSTER_RANK", "MUSTER_RANK"}}, "env.value": {{"a\x00", "zero byte"}}, "spec.workingDir": {{"tmp", "tmp"}}, "spec.rootfs": {{"tmp", "tmp"}, {"/srv/../etc", "/srv/../etc"}, {"/srv/", "/srv/"}},
	"mounts.source": {{"", "required"}, {"tmp", "tmp"}, {"/srv/../etc", "/srv/../etc"}, {tooLong, "zzz"}}, "mounts.target": {{"tmp", "tmp"}, {"/srv/..", "/srv/.."}, {"/", "/"}, {"/proc/1", "/proc/1"}},
}

// anyValue are fields that take every value of their type, with the reason.
var anyValue = map[string]string{
	"metadata.resourceVersion":         "it is compared with the version of the object",
	"ApproveOptions resourceVersion":   "it is compared with the version of the object",
	"preconditions.resourceVersion":    "it is compared with the version of the object",
	"preconditions.uid":                "it is compared with the uid of the object",
	"QuotaModePatch metadata.uid":      "it is compared with the uid of the mode",
	"quota.type":                       "a number of the tree's own; quota counts by it",
	"QuotaTree spec.nodes.parent":      "the whole tree is checked by its owner, the coordinator",
	"Consumer spec.owner":              "any text names an owner",
	"Consumer spec.trees.id":           "any text names a part",
	"Consumer spec.trees.groupID":      "a leaf of the tree; the tree is known to the coordinator alone",
	"Consumer spec.trees.priority":     "any number orders",
	"Consumer spec.trees.type":         "a number of the tree's own",
	"OperatorCertificate spec.request": "the request is decoded where it is signed; coordinator/enroll tests it",
	"BootstrapToken spec.ttl":          "checked where the token is made; coordinator/enroll tests it",
	"BootstrapToken spec.uses":         "checked where the token is made; coordinator/enroll tests it",
	"OperatorCertificate spec.ttl":     "checked where the certificate is made; coordinator/enroll tests it",
}

// unread are parts of documents that the server skips, with the reason.
var unread = map[string]string{
	"Consumer apiVersion": "a consumer is tried and never kept: its spec alone is read",
	"Consumer metadata":   "a consumer is tried and never kept: its spec alone is read",
}

func isUnread(id string) bool {
	for part := range unread {
		if id == part || strings.HasPrefix(id, part+".") {
			return true
		}
	}
	return false
}

// atEnd returns the entry of the longest end of KIND PATH.
func atEnd[T any](table map[string]T, id string) (found T, end string) {
	for key, v := range table {
		if len(key) > len(end) && (id == key || strings.HasSuffix(id, "."+key) || strings.HasSuffix(id, " "+key)) {
			found, end = v, key
		}
	}
	return found, end
}

// badDocument is a document of a kind with one wrong value.
type badDocument struct {
	kind  Kind
	path  string
	shown []string // the value, as a refusal may show it
	doc   []byte
}

// badDocuments are the wrong documents of every kind that the server reads: each
// field with values of other types and, where it has limits, beyond them.
func badDocuments(t *testing.T) []badDocument {
	t.Helper()
	var all []badDocument
	usedRows, usedReasons := map[string]bool{}, map[string]bool{}
	for _, k := range decodable() {
		every(k.Fields, func(f Field) {
			id := k.Name + " " + f.Path
			if isUnread(id) {
				return
			}
			bad := wrongTypes(f)
			if !f.ReadOnly && !f.Refused && f.Fields == nil && !slices.Contains(leftOut[k.Name], f.Path) && !partOf(leftOut[k.Name], f.Path) {
				limits := wrongByType(t, k, f)
				row, end := atEnd(wrongByMeaning, id)
				reason, forAny := atEnd(anyValue, id)
				if len(forAny) > len(end) {
					row, usedReasons[forAny] = nil, true
				} else {
					reason, usedRows[end] = "", true
				}
				if bad = append(append(bad, limits...), row...); f.Type != "boolean" && len(limits)+len(row) == 0 && reason == "" {
					t.Errorf("%s has no row with a bad value: add one to wrongByMeaning, or say in anyValue why there is none", id)
				}
			}
			for _, w := range bad {
				written, err := json.Marshal(w.value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, badDocument{k, f.Path, []string{w.shown, string(written)}, put(t, k, f.Path, w.value)})
			}
		})
	}
	for key := range wrongByMeaning {
		if !usedRows[key] {
			t.Errorf("wrongByMeaning has %q, the end of no field's path", key)
		}
	}
	for key := range anyValue {
		if !usedReasons[key] {
			t.Errorf("anyValue has %q, the end of no field's path", key)
		}
	}
	return all
}

// put returns the example of a kind with one value, and the objects and lists above
// the value where the example leaves them out.
func put(t *testing.T, k Kind, path string, v any) []byte {
	t.Helper()
	names := strings.Split(path, ".")
	doc := example(t, k)
	fields, at := k.Fields, doc
	for _, name := range names[:len(names)-1] {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		f := fields[i]
		switch {
		case strings.HasPrefix(f.Type, "list"):
			list, _ := at[name].([]any)
			if len(list) == 0 {
				list = []any{map[string]any{}}
			}
			at[name], at = list, list[0].(map[string]any)
		case strings.HasPrefix(f.Type, "map"):
			m, _ := at[name].(map[string]any)
			if m[inMap] == nil {
				m = map[string]any{inMap: map[string]any{}}
			}
			at[name], at = m, m[inMap].(map[string]any)
		default:
			m, _ := at[name].(map[string]any)
			if m == nil {
				m = map[string]any{}
			}
			at[name], at = m, m
		}
		fields = f.Fields
	}
	at[names[len(names)-1]] = v
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// String names the document in a failure.
func (b badDocument) String() string {
	return fmt.Sprintf("%s with %s %q", b.kind.Name, b.path, b.shown[0])
}

// check wants a refusal that names the field, shows the value and is of bounded
// length.
func (b badDocument) check(t *testing.T, refusal string) {
	t.Helper()
	said := inAny.ReplaceAllString(refusal, "")
	shows := slices.ContainsFunc(b.shown, func(s string) bool { return strings.Contains(said, s) })
	if !names(said, b.path) || !shows || len(said) > longestRefusal {
		t.Errorf("%s is answered %q: want the field and the value", b, said[:min(len(said), longestRefusal)])
	}
}

// longestRefusal bounds a refusal, in bytes: a document of 1 MiB is not sent back.
const longestRefusal = 600

func TestEveryFieldRefusesBadValuesByFieldAndValue(t *testing.T) {
	for _, b := range badDocuments(t) {
		err := b.kind.Decode(b.doc)
		if err == nil {
			t.Errorf("%s takes %s", b, b.doc)
			continue
		}
		b.check(t, err.Error())
		var status *api.Status
		if errors.As(err, &status) && status.Code != 400 && status.Code != 422 {
			t.Errorf("%s is answered with %d, want 400 or 422", b, status.Code)
		}
	}
}
