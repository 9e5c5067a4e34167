package devices

// Unknown is a GPU that the driver counts and that could not be used.
type Unknown struct {
	Position int    // the driver's number
	PCIBusID string // "" where it is not known
	Why      string
}
