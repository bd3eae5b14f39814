//go:build !linux

package mapping

// Huge asks for large pages; here it does nothing.
func Huge(b []byte) {}
