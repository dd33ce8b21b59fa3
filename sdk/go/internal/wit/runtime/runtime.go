//go:build wasip1

// Package wit_runtime has what the generated bindings need of memory and handles. They give it its name.
package wit_runtime

import (
	"runtime"
	"unsafe"
)

// Handle is a resource of the host. Zero means that the plugin has given it away.
type Handle struct{ value int32 }

// MakeHandle wraps a handle that the host returned.
func MakeHandle(value int32) *Handle { return &Handle{live(value)} }

// Use returns the handle, which stays the plugin's.
func (h *Handle) Use() int32 { return live(h.value) }

// Take returns the handle and gives up its ownership.
func (h *Handle) Take() int32 { return live(h.TakeOrNil()) }

// TakeOrNil returns the handle and gives up its ownership. A second call returns zero.
func (h *Handle) TakeOrNil() int32 {
	value := h.value
	h.value = 0
	return value
}

// Set gives the plugin a handle again.
func (h *Handle) Set(value int32) {
	if h.value != 0 {
		panic("the handle is set")
	}
	h.value = live(value)
}

func live(value int32) int32 {
	if value == 0 {
		panic("the handle was given away")
	}
	return value
}

// Allocate returns memory that the pinner keeps where it is.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	if align > 8 {
		panic("no WIT type needs a larger alignment than 8")
	}
	// Go aligns memory as the type of its elements asks. Bytes stay bytes, which need no rounding.
	var memory unsafe.Pointer
	if align == 1 {
		memory = unsafe.Pointer(unsafe.SliceData(make([]byte, size)))
	} else {
		memory = unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))
	}
	pinner.Pin(memory)
	return memory
}

// arguments keeps memory that the host has filled until the bindings have copied it.
var arguments runtime.Pinner

// Unpin lets the collector have the memory of the arguments.
func Unpin() { arguments.Unpin() }

// started says whether Go can allocate. The host allocates arguments before Go's own start.
var started bool

func init() { started = true }

//go:linkname sbrk runtime.sbrk
func sbrk(size uintptr) unsafe.Pointer

//go:wasmimport wasi_snapshot_preview1 adapter_monotonic_clock_set_paused
func pauseClock(paused bool)

// allocateForHost is how the host gets memory for what it passes to the component.
//
// The component model forbids calls of imports meanwhile, and Go's collector reads the clock. The adapter answers it with an
// earlier reading while its clock is paused.
//
//go:wasmexport cabi_realloc
func allocateForHost(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	if old != nil || oldSize != 0 {
		panic("the host never grows what it allocated")
	}
	if !started {
		address := sbrk(size + align - 1)
		return unsafe.Add(address, -uintptr(address)&(align-1))
	}
	pauseClock(true)
	memory := Allocate(&arguments, size, align)
	pauseClock(false)
	return memory
}
