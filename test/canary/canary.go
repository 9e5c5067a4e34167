// Package canary finds secrets where none may be: in logs, metrics, answers, entries of
// the audit and files. Tests use secrets that bear a mark; secrets that programs draw
// are known by their form.
package canary

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Mark is in every secret that a test chooses. It is in no other text.
const Mark = "cAnArY"

// Secret is a secret for a test, long enough for every use: one for each name.
func Secret(name string) string {
	return Mark + "-" + name + "-" + strings.Repeat("0123456789abcdef", 2)
}

// forms are the forms of secrets that programs draw. A hidden token, such as
// "muster-boot.ID.(hidden)", has none of them.
var forms = map[string]*regexp.Regexp{
	"an access token":                 regexp.MustCompile(`muster\.at-[0-9a-f]{10}\.[0-9a-f]{8,}`),
	"a bootstrap token":               regexp.MustCompile(`muster-boot\.[0-9a-f]{10}\.[0-9a-f]{8,}`),
	"a private key":                   regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`),
	"a credential of a request":       regexp.MustCompile(`(?i)bearer [0-9a-z._-]{16,}`),
	"a secret that a test has chosen": regexp.MustCompile(Mark),
}

// Find lists the secrets in a text, in words and without the secrets. known are further
// secrets, such as keys that a test has read from the store.
func Find(text string, known ...string) (all []string) {
	for what, form := range forms {
		if at := form.FindStringIndex(text); at != nil {
			all = append(all, what+around(text, at[0]))
		}
	}
	for i, secret := range known {
		if at := strings.Index(text, secret); secret != "" && at >= 0 {
			all = append(all, fmt.Sprintf("known secret %d", i)+around(text, at))
		}
	}
	slices.Sort(all)
	return all
}

// around is the beginning of the line that has a secret, up to the secret.
func around(text string, at int) string {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return fmt.Sprintf(" behind %q", line[max(0, len(line)-200):])
}
