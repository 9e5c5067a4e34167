package enroll

// Check refuses a change of an identity by its error. The zero value refuses nothing.
type Check[T any] func(T) error

func (c Check[T]) of(v T) error {
	if c == nil {
		return nil
	}
	return c(v)
}
