/* What the files of the native recorder share. All of it runs with the GIL held, which is what
 * makes every function here atomic for the others; see docs/design/native-recorder.md. */
#ifndef OPSCOPE_NATIVE_H
#define OPSCOPE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <stdint.h>

#ifdef Py_GIL_DISABLED
#error "the native recorder relies on the GIL; use the Python recorder"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "spans are little-endian in the file; use the Python recorder"
#endif

/* Newer Pythons keep long chains from overflowing the stack by themselves. */
#ifndef Py_TRASHCAN_BEGIN
#define Py_TRASHCAN_BEGIN(object, dealloc)
#define Py_TRASHCAN_END
#endif

/* Counts up, here and in extension.py, when this half and the Python half must change together. */
#define FACE 3

/* One span: the 64 bytes of `model.SPAN`, as they stand in the file. */
typedef struct {
    int64_t id, owner;
    int32_t name;
    int8_t kind, phase;
    int16_t flags;
    int32_t lane, submitted_lane;
    int64_t start_ns, end_ns, submitted_ns, cpu_ns;
} Span;

_Static_assert(sizeof(Span) == 64, "a span is 64 bytes");

enum { FIELDS = 12, FAILED = 1, KIND_CALL = 1, KIND_OP = 2, KIND_RUNTIME = 6 };

/* A span in the making, which Python sees as a list of twelve integers. */
typedef struct {
    PyObject_HEAD
    uint64_t serial; /* of the recording whose hooks made it; 0: somebody else */
    Span span;
} Row;

/* What one thread has recorded and nobody has written yet: chunks, filled at the end by the thread
 * and emptied at the front by the writer. */
#define CHUNK 512
typedef struct Chunk {
    struct Chunk *next;
    Span rows[CHUNK];
} Chunk;

typedef struct {
    PyObject_HEAD
    Chunk *first, *last, *spare;
    Py_ssize_t from, to; /* the next row to take in `first`, to fill in `last` */
    Py_ssize_t waiting, bound, wake_at;
    long long dropped, reported, drop_from, drop_to;
    unsigned long ident;
    int lane;
    PyObject *thread; /* a weak reference */
} Buffer;

/* The part of a recorder that is C; `record.chosen.NativeRecorder` is its subclass. */
typedef struct {
    PyObject_HEAD
    uint64_t serial; /* of this recorder: never used twice */
    int64_t last_id;
    PyObject *opened; /* dict: id -> Row (or a list, from Python) */
    PyObject *now_by, *cpu_by; /* a clock written in Python; None: the system's */
    PyObject *by_text; /* dict: the names known so far */
    char closed, woken, plain_cpu;
} Core;

/* One open call, as the thread that runs it knows it; see `scope.Frame`. */
typedef struct {
    PyObject_HEAD
    PyObject *recorder, *outer, *phase, *around, *mark, *yielding;
    int64_t call, task, cpu;
    unsigned long aside; /* the thread that does something nobody owns; 0: none */
    int lane;
    char closed, left, claimed;
    int8_t phase_number;
} Frame;

/* What the module holds: one of each in a process. */
typedef struct {
    PyTypeObject *Row, *Buffer, *Core, *Frame, *Operators;
    PyObject *current; /* the ContextVar of `scope` */
    PyObject *adopted, *waiting; /* its dict and its set */
    PyObject *enter, *leave, *find, *link, *open, *pull; /* its functions, for all that is rare */
    PyObject *zero, *no_frames; /* Phase.NONE and () */
    PyObject *wake, *new_here, *slow_cpu, *unfit, *name, *recorder; /* interned names */
} State;

extern State state;
extern uint64_t buffers_gone; /* how many buffers were ever freed: pointers kept before are stale */

extern PyType_Spec row_spec, buffer_spec, core_spec, frame_spec, operators_spec;
extern PyMethodDef current_functions[], frame_functions[], packed_functions[];

/* row.c */
Row *row_new(void);
int span_from(PyObject *fields, Span *span);
PyObject *span_tuple(const Span *span);
int to_int64(PyObject *number, int64_t *found);

/* buffer.c */
int buffer_full(const Buffer *buffer);
int buffer_put(Buffer *buffer, const Span *span);

/* core.c */
static inline int is_core(PyObject *thing) { return PyObject_TypeCheck(thing, state.Core); }
static inline int is_frame(PyObject *thing) { return Py_IS_TYPE(thing, state.Frame); }
int core_now(Core *core, int64_t *now);
int core_cpu(Core *core, int64_t *cpu);
Buffer *core_here(Core *core); /* borrowed */
int core_put(Core *core, const Span *span);
int core_open(Core *core, Row *row);
int core_begin(Core *core, const Span *span, int64_t *id);
int core_end(Core *core, int64_t id, int64_t flags, int64_t cpu_ns, int64_t now);
int core_unfit(Core *core, PyObject *row); /* the writer tells of it */

/* current.c */
int is_beside(void); /* whether this thread must not set the ContextVar now */
int make_current(PyObject *frame); /* NULL: none */
int plainly_open(PyObject *held, PyObject *recorder); /* innermost and open, without a second look */
int frame_current(PyObject *recorder, PyObject **frame); /* a new reference, or NULL */
int frame_held(PyObject **frame); /* the same, whichever recording it belongs to */

/* Arguments of a fast call by name: fills `found`, which has a slot for each of `names`. */
int take_arguments(const char *function, PyObject *const *args, Py_ssize_t positional,
                   PyObject *by_name, PyObject **names, Py_ssize_t known, Py_ssize_t required,
                   PyObject **found);

#endif
