package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api/internal/strict"
	"github.com/musterd/muster/resource"
)

// invalid is the refusal of a well-formed document: 422, path first.
func invalid(path, format string, args ...any) *Status {
	return faultAt(http.StatusUnprocessableEntity, path, fmt.Sprintf(format, args...))
}

// faultAt is the refusal of one field, with the code of the refusal.
func faultAt(code int, path, message string) *Status {
	s := Errorf(code, "%s: %s", path, message)
	s.Causes = []Cause{{Field: path, Message: message}}
	return s
}

// key appends a map's key to a path.
func key(path, name string) string { return strict.Join(path, name, true) }

func isLowerAlnum(c byte) bool { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') }

// IsLabel reports whether s is an RFC 1123 label: 1..63 of a-z, 0-9 and '-',
// beginning and ending alphanumeric. Namespaces and queues are labels.
func IsLabel(s string) bool {
	if s == "" || len(s) > 63 || !isLowerAlnum(s[0]) || !isLowerAlnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !isLowerAlnum(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

// IsSubdomain reports whether s is an RFC 1123 subdomain, as [resource.IsSubdomain].
// Names of objects are subdomains.
func IsSubdomain(s string) bool { return resource.IsSubdomain(s) }

// IsLabelKey reports whether s may be a label's key: [subdomain/]name.
func IsLabelKey(s string) bool {
	prefix, name, qualified := strings.Cut(s, "/")
	if !qualified {
		return resource.IsLabelName(s)
	}
	return IsSubdomain(prefix) && resource.IsLabelName(name)
}

// IsLabelValue reports whether s may be a label's value; "" may.
func IsLabelValue(s string) bool { return s == "" || resource.IsLabelName(s) }

const (
	labelKeyRule   = "want [DNS-PREFIX/]NAME, the name 1..63 letters, digits, '-', '_' or '.', alphanumeric at both ends"
	labelValueRule = "want at most 63 letters, digits, '-', '_' or '.', alphanumeric at both ends"
	labelRule      = "want 1..63 of a-z, 0-9 and '-', alphanumeric at both ends (RFC 1123 label)"
	subdomainRule  = "want 1..%d of a-z, 0-9, '-' and '.', alphanumeric at both ends of each part (RFC 1123 subdomain)"
)

// checkLabels validates a set of labels, in order of their keys.
func checkLabels(path string, labels map[string]string) *Status {
	var faults faults
	faults.add(atMost(path, len(labels), MaxLabels))
	for _, k := range sortedKeys(labels) {
		if !IsLabelKey(k) {
			faults.add(invalid(key(path, k), "%q is not a label key: %s", clip(k), labelKeyRule))
		}
		if v := labels[k]; !IsLabelValue(v) {
			faults.add(invalid(key(path, k), "%q is not a label value: %s", clip(v), labelValueRule))
		}
	}
	return faults.status()
}

// maxAnnotations bounds keys and values of all annotations together, in bytes.
const maxAnnotations = 256 << 10

// checkMeta validates metadata; a name is required unless nameLimit is 0.
func checkMeta(path string, m ObjectMeta, nameLimit int) *Status {
	var faults faults
	switch {
	case nameLimit == 0 && m.Name != "":
		faults.add(invalid(path+".name", "%q: members are named after the job, leave it out", clip(m.Name)))
	case nameLimit > 0 && m.Name == "":
		faults.add(invalid(path+".name", "required: "+subdomainRule, nameLimit))
	case nameLimit > 0 && (!IsSubdomain(m.Name) || len(m.Name) > nameLimit):
		faults.add(invalid(path+".name", "%q is not a name: "+subdomainRule, clip(m.Name), nameLimit))
	}
	faults.add(checkMetaBesideName(path, m))
	return faults.status()
}

func checkMetaBesideName(path string, m ObjectMeta) *Status {
	var faults faults
	if m.Namespace != "" && !IsLabel(m.Namespace) {
		faults.add(invalid(path+".namespace", "%q is not a namespace: %s", clip(m.Namespace), labelRule))
	}
	faults.add(checkLabels(path+".labels", m.Labels))
	faults.add(CheckAnnotations(path+".annotations", m.Annotations))
	return faults.status()
}

// checkDuration validates a positive Go duration ("7200s", "1h30m"); "" is
// absent.
func checkDuration(path, text string) *Status {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return invalid(path, "%q is not a duration: want e.g. 300s, 10m or 2h", clip(text))
	}
	if d <= 0 {
		return invalid(path, "%q is not a positive duration", clip(text))
	}
	return nil
}

// sortedKeys makes walks over maps repeatable, so that the same document
// always gets the same refusal.
func sortedKeys[K ~string, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clip shortens a value for a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
