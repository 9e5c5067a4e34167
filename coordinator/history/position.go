package history

import (
	"fmt"

	"github.com/musterd/muster/resource"
)

// PositionError refuses a batch that does not follow the position of the history:
// another projector has written since, or the batch was written before.
type PositionError struct {
	Has   resource.Revision // the position of the history
	After resource.Revision // that of the batch
}

// Error names both positions.
func (e *PositionError) Error() string {
	return fmt.Sprintf("the history stands at revision %d and the batch follows revision %d: read the position again", e.Has, e.After)
}
