package shim

import (
	"fmt"
)

// shareFile is the Share, by the agent.
const shareFile = "share"

// Share is the part of the room for output of a host that a member has.
type Share struct {
	Version int `json:"version"`
	// Tenant has the grant of the member.
	Tenant string `json:"tenant,omitempty"`
	// Bytes bounds the output that the supervisor keeps, beside the bounds of the spec.
	Bytes int64 `json:"bytes"`
}

// ParseShare reads a share.
func ParseShare(data []byte) (Share, error) {
	s, err := decode[Share](data, maxRecord)
	switch {
	case err != nil:
		return Share{}, fmt.Errorf("share: %w", err)
	case s.Version != version:
		return Share{}, fmt.Errorf("share: version %d, this program reads version %d", s.Version, version)
	case s.Bytes < 0:
		return Share{}, fmt.Errorf("share: %d bytes", s.Bytes)
	}
	return s, nil
}

// Share reads the share; fs.ErrNotExist where no agent has written the file.
func (f Folder) Share() (Share, error) { return read(f, shareFile, maxRecord, ParseShare) }

// WriteShare replaces the share. A supervisor keeps to the new share with the output a
// second later.
func (f Folder) WriteShare(s Share) error {
	s.Version = version
	return f.write(shareFile, s)
}
