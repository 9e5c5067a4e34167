package pki

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// tokenPrefix is the beginning of each bootstrap token, so that a search finds a
// token that was written to a log or a repository by mistake.
const tokenPrefix = "muster-boot"

// Lengths of a token's parts, in hex digits.
const (
	idDigits     = 10
	secretDigits = 32
	pinDigits    = 2 * sha256.Size
)

// Token lets one host or several ask for a certificate. Its text is
// muster-boot.ID.SECRET.PIN: ID is public, SECRET proves the right, and PIN
// tells the host which authority to believe before it trusts any.
type Token struct {
	ID     string
	Pin    Pin
	secret string
}

// Pin is the SHA-256 of an authority's SubjectPublicKeyInfo.
type Pin [sha256.Size]byte

// PinOf is the pin of a certificate's key.
func PinOf(c *x509.Certificate) Pin { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }

// String is the pin in hex.
func (p Pin) String() string { return hex.EncodeToString(p[:]) }

// NewToken draws a token of 128 secret bits.
func NewToken(pin Pin) Token {
	var random [(idDigits + secretDigits) / 2]byte
	rand.Read(random[:]) // never fails
	text := hex.EncodeToString(random[:])
	return Token{ID: text[:idDigits], secret: text[idDigits:], Pin: pin}
}

// String hides the secret, so that no log shows it.
func (t Token) String() string { return tokenPrefix + "." + t.ID + ".(hidden)" }

// GoString hides the secret, so that no log shows it.
func (t Token) GoString() string { return t.String() }

// Text returns the whole token with its secret.
func (t Token) Text() string {
	return strings.Join([]string{tokenPrefix, t.ID, t.secret, t.Pin.String()}, ".")
}

// Hash returns the hash of the secret, the only part that is stored. The secret has
// too much entropy for a search: no salt, no stretching.
func (t Token) Hash() string {
	sum := sha256.Sum256([]byte(t.ID + "." + t.secret))
	return hex.EncodeToString(sum[:])
}

// Proves reports, in constant time, whether hash is the hash of the token's
// secret.
func (t Token) Proves(hash string) bool {
	return subtle.ConstantTimeCompare([]byte(t.Hash()), []byte(hash)) == 1
}

// ParseToken is the inverse of Text. The error never has the secret.
func ParseToken(text string) (Token, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 || parts[0] != tokenPrefix {
		return Token{}, fmt.Errorf("bootstrap token: want %s.ID.SECRET.PIN as muster token create prints it", tokenPrefix)
	}
	for i, want := range []int{idDigits, secretDigits, pinDigits} {
		if part := parts[i+1]; len(part) != want || strings.Trim(part, "0123456789abcdef") != "" {
			return Token{}, fmt.Errorf("bootstrap token: its %s has %d characters, want %d of 0-9 and a-f: was it copied whole?",
				[]string{"id", "secret", "pin"}[i], len(part), want)
		}
	}
	t := Token{ID: parts[1], secret: parts[2]}
	if n, err := hex.Decode(t.Pin[:], []byte(parts[3])); err != nil || n != len(t.Pin) {
		return Token{}, errors.New("bootstrap token: its pin is not hex")
	}
	return t, nil
}

// Pinned returns the certificates of a chain that are authorities with the
// pinned key, which a host without trusted authorities may trust.
func Pinned(chain []*x509.Certificate, pin Pin) (Bundle, error) {
	var roots Bundle
	for _, c := range chain {
		if got := PinOf(c); c.IsCA && subtle.ConstantTimeCompare(got[:], pin[:]) == 1 {
			roots = append(roots, c)
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("none of the %d certificates shown is the authority that the bootstrap token names (pin %s…): wrong cluster, an old token, or somebody in between",
			len(chain), pin.String()[:12])
	}
	return roots, nil
}

// MatchNode reports whether a node id matches a token's pattern: '*' stands for
// any characters, '?' for one, everything else for itself.
func MatchNode(pattern, id string) bool {
	// The classical two-pointer match: on a mismatch the newest '*' takes one
	// character more. Quadratic at worst, and both are short.
	p, i, star, from := 0, 0, -1, 0
	for i < len(id) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == id[i]):
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// CheckPattern refuses a pattern that no node id can match.
func CheckPattern(pattern string) error {
	sample := strings.NewReplacer("*", "", "?", "x").Replace(pattern)
	if sample == "" && pattern != "" {
		sample = "x"
	}
	if len(pattern) > 2*maxName || !isName(sample) {
		return fmt.Errorf("node pattern %q: want a node id, in which '*' stands for any characters and '?' for one", clip(pattern))
	}
	return nil
}
