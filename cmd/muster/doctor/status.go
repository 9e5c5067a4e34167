package doctor

import (
	"errors"

	"github.com/musterd/muster/api"
)

// statusOf is the Status in an error, nil where there is none.
func statusOf(err error) *api.Status {
	var status *api.Status
	if errors.As(err, &status) {
		return status
	}
	return nil
}
