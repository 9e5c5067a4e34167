package resource

import "strings"

// IsLabelName reports whether a text is the name part of a label's key: 1 to 63 of
// letters, digits, '-', '_' and '.', with a letter or digit at both ends.
func IsLabelName(s string) bool {
	if s == "" || len(s) > 63 || !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.' {
			return false
		}
	}
	return true
}

// IsSubdomain reports whether a text is an RFC 1123 subdomain: labels of a-z, 0-9 and '-'
// joined by dots, at most 253 bytes, without the bound of 63 bytes on a label (as
// Kubernetes has it).
func IsSubdomain(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
		for i := range len(part) {
			if part[i] != '-' && (!isAlphanumeric(part[i]) || part[i] >= 'A' && part[i] <= 'Z') {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}
