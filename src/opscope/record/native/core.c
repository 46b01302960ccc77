/* The hot half of a recorder: clocks, the buffer of the calling thread, begin, end, put. */
#include "native.h"

#include <time.h>

/* Which buffer this thread had last, and in which recorder. The pointer is borrowed: it is good for
 * as long as no buffer at all was freed since. */
static _Thread_local struct {
    uint64_t serial, gone;
    Buffer *buffer;
} last;

static uint64_t serials = 0;

static int64_t system_now(void) {
#ifdef __APPLE__
    return (int64_t)clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
#else
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
#endif
}

/* What a clock written in Python says. */
static int ask(PyObject *clock, int64_t *found) {
    Py_INCREF(clock); /* it may take another one's place meanwhile */
    PyObject *said = PyObject_CallNoArgs(clock);
    Py_DECREF(clock);
    if (!said) return -1;
    int failed = to_int64(said, found);
    Py_DECREF(said);
    return failed;
}

int core_now(Core *core, int64_t *now) {
    if (core->now_by) return ask(core->now_by, now);
    *now = system_now();
    return 0;
}

int core_cpu(Core *core, int64_t *cpu) {
    if (!core->plain_cpu) { /* recording was paused before: some time does not count */
        PyObject *said = PyObject_CallMethodNoArgs((PyObject *)core, state.slow_cpu);
        if (!said) return -1;
        int failed = to_int64(said, cpu);
        Py_DECREF(said);
        return failed;
    }
    if (core->cpu_by) return ask(core->cpu_by, cpu);
    struct timespec used;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used)) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    *cpu = (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
    return 0;
}

Buffer *core_here(Core *core) {
    if (last.serial == core->serial && last.gone == buffers_gone) return last.buffer;
    PyObject *found = PyObject_CallMethodNoArgs((PyObject *)core, state.new_here);
    if (!found) return NULL;
    int kept = Py_IS_TYPE(found, state.Buffer) && Py_REFCNT(found) > 1;
    Py_DECREF(found);
    if (!kept) {
        PyErr_SetString(PyExc_TypeError, "_known_here must return a Buffer that the thread keeps");
        return NULL;
    }
    last.serial = core->serial;
    last.gone = buffers_gone;
    last.buffer = (Buffer *)found;
    return last.buffer;
}

static int wake(Core *core) {
    core->woken = 1; /* first: this may run Python, which may record */
    PyObject *done = PyObject_CallMethodNoArgs((PyObject *)core, state.wake);
    if (!done) return -1;
    Py_DECREF(done);
    return 0;
}

int core_put(Core *core, const Span *span) {
    Buffer *buffer = core_here(core);
    if (!buffer) return -1;
    buffer_put(buffer, span);
    return buffer->waiting >= buffer->wake_at && !core->woken ? wake(core) : 0;
}

/* Whether there is somewhere to keep what is open: not before it is set up, and not any more when
 * the collector has taken the recorder apart. */
static int ready(Core *core) {
    if (core->opened && PyDict_CheckExact(core->opened)) return 1;
    PyErr_SetString(PyExc_TypeError, "the recorder is not ready: `opened` must be a dict");
    return 0;
}

int core_open(Core *core, Row *row) {
    if (!ready(core)) return -1;
    PyObject *key = PyLong_FromLongLong(row->span.id);
    if (!key) return -1;
    int failed = PyDict_SetItem(core->opened, key, (PyObject *)row);
    Py_DECREF(key);
    return failed;
}

int core_begin(Core *core, const Span *span, int64_t *id) {
    Row *row = row_new();
    if (!row) return -1;
    row->span = *span;
    *id = row->span.id = ++core->last_id;
    int failed = core_open(core, row);
    /* Until it has a start, the writer takes it for one that is still being filled in. */
    if (!failed && !row->span.start_ns) {
        int64_t now;
        failed = core_now(core, &now);
        if (!failed) row->span.start_ns = now;
    }
    Py_DECREF(row);
    return failed;
}

int core_unfit(Core *core, PyObject *row) {
    PyObject *done = PyObject_CallMethodOneArg((PyObject *)core, state.unfit, row);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int core_end(Core *core, int64_t id, int64_t flags, int64_t cpu_ns, int64_t now) {
    if (!ready(core)) return -1;
    PyObject *key = PyLong_FromLongLong(id);
    if (!key) return -1;
    int failed = -1;
    Span span;
    PyObject *opened = core->opened; /* waking the writer may run what takes it away */
    Py_INCREF(opened);
    PyObject *row = PyDict_GetItemWithError(opened, key);
    if (!row) {
        failed = PyErr_Occurred() ? -1 : 0; /* unknown, or ended before */
        goto done;
    }
    Py_INCREF(row);
    if (!span_from(row, &span)) {
        int fits = (flags | span.flags) == (int16_t)(flags | span.flags);
        span.flags |= (int16_t)flags;
        span.end_ns = now > span.start_ns ? now : span.start_ns;
        span.cpu_ns = cpu_ns;
        /* In this order the writer finds the call among the open ones or in a buffer, whatever
         * waking it may run. */
        failed = fits ? core_put(core, &span) : core_unfit(core, row);
        if (PyDict_DelItem(opened, key)) {
            if (!failed && PyErr_ExceptionMatches(PyExc_KeyError))
                PyErr_Clear(); /* ended by what waking it ran */
            else
                failed = -1;
        }
    }
    Py_DECREF(row);
done:
    Py_DECREF(opened);
    Py_DECREF(key);
    return failed;
}

/* --- as Python sees it --------------------------------------------------------------------------- */

static PyObject *method_begin(PyObject *self, PyObject *const *args, Py_ssize_t count,
                              PyObject *by_name) {
    static PyObject *names[9];
    static const char *texts[9] = {"kind", "name", "owner", "phase", "flags", "lane",
                                   "submitted_ns", "submitted_lane", "start_ns"};
    Core *core = (Core *)self;
    PyObject *given[9] = {NULL};
    int64_t values[9] = {0, 0, 0, 0, 0, -1, 0, -1, 0};
    for (int index = 0; !names[8] && index < 9; index++)
        if (!(names[index] = PyUnicode_InternFromString(texts[index]))) return NULL;
    if (take_arguments("begin", args, count, by_name, names, 9, 2, given))
        return NULL;
    if (!given[2]) {
        PyErr_SetString(PyExc_TypeError, "begin() needs an argument: owner");
        return NULL;
    }
    if (core->closed) return PyLong_FromLong(0);
    for (int index = 0; index < 9; index++)
        if (given[index] && to_int64(given[index], &values[index])) return NULL;
    if (values[5] < 0) {
        Buffer *buffer = core_here(core);
        if (!buffer) return NULL;
        values[5] = buffer->lane;
    }
    if (values[7] < 0) values[7] = values[5];
    Span span = {.owner = values[2], .name = (int32_t)values[1], .kind = (int8_t)values[0],
                 .phase = (int8_t)values[3], .flags = (int16_t)values[4],
                 .lane = (int32_t)values[5], .submitted_lane = (int32_t)values[7],
                 .start_ns = values[8], .submitted_ns = values[6], .cpu_ns = -1};
    if (span.name != values[1] || span.kind != values[0] || span.phase != values[3] ||
        span.flags != values[4] || span.lane != values[5] || span.submitted_lane != values[7]) {
        PyErr_SetString(PyExc_OverflowError, "begin() was given a number that does not fit a span");
        return NULL;
    }
    int64_t id;
    if (core_begin(core, &span, &id)) return NULL;
    return PyLong_FromLongLong(id);
}

static PyObject *method_end(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *by_name) {
    static PyObject *names[4];
    static const char *texts[4] = {"span", "flags", "cpu_ns", "end_ns"};
    Core *core = (Core *)self;
    PyObject *given[4] = {NULL};
    int64_t values[4] = {0, 0, -1, 0};
    for (int index = 0; !names[3] && index < 4; index++)
        if (!(names[index] = PyUnicode_InternFromString(texts[index]))) return NULL;
    if (take_arguments("end", args, count, by_name, names, 4, 1, given)) return NULL;
    for (int index = 0; index < 4; index++)
        if (given[index] && to_int64(given[index], &values[index])) return NULL;
    if (!values[3] && core_now(core, &values[3])) return NULL;
    if (core_end(core, values[0], values[1], values[2], values[3])) return NULL;
    Py_RETURN_NONE;
}

static PyObject *method_put(PyObject *self, PyObject *fields) {
    Span span;
    if (span_from(fields, &span)) {
        /* As in Python, where the writer finds out: whoever puts a wrong row is not the program. */
        if ((!PyTuple_Check(fields) && !PyList_Check(fields)) ||
            !(PyErr_ExceptionMatches(PyExc_OverflowError) ||
              PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
            return NULL;
        PyErr_Clear();
        if (core_unfit((Core *)self, fields)) return NULL;
        Py_RETURN_NONE;
    }
    if (core_put((Core *)self, &span)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *method_here(PyObject *self, PyObject *nothing) {
    (void)nothing;
    PyObject *buffer = (PyObject *)core_here((Core *)self);
    Py_XINCREF(buffer);
    return buffer;
}

static PyObject *method_cpu(PyObject *self, PyObject *nothing) {
    int64_t cpu;
    (void)nothing;
    return core_cpu((Core *)self, &cpu) ? NULL : PyLong_FromLongLong(cpu);
}

static PyObject *method_next_id(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyLong_FromLongLong(++((Core *)self)->last_id);
}

static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *by_name) {
    (void)args;
    (void)by_name; /* for the subclass */
    Core *core = (Core *)type->tp_alloc(type, 0);
    if (core) {
        core->serial = ++serials;
        core->plain_cpu = 1;
    }
    return (PyObject *)core;
}

static int core_traverse(PyObject *self, visitproc visit, void *arg) {
    Core *core = (Core *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(core->opened);
    Py_VISIT(core->now_by);
    Py_VISIT(core->cpu_by);
    Py_VISIT(core->by_text);
    return 0;
}

static int core_clear(PyObject *self) {
    Core *core = (Core *)self;
    Py_CLEAR(core->opened);
    Py_CLEAR(core->now_by);
    Py_CLEAR(core->cpu_by);
    Py_CLEAR(core->by_text);
    return 0;
}

static void core_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    core_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *clock_set(PyObject *self, PyObject *clocks) {
    Core *core = (Core *)self;
    PyObject *now, *cpu;
    if (!PyArg_ParseTuple(clocks, "OO:ask_clock", &now, &cpu)) return NULL;
    Py_INCREF(now);
    Py_XSETREF(core->now_by, now);
    Py_INCREF(cpu);
    Py_XSETREF(core->cpu_by, cpu);
    Py_RETURN_NONE;
}

PyObject *native_now(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    return PyLong_FromLongLong(system_now());
}

static PyMethodDef core_methods[] = {
    {"begin", (PyCFunction)(void (*)(void))method_begin, METH_FASTCALL | METH_KEYWORDS,
     "See Recorder.begin."},
    {"end", (PyCFunction)(void (*)(void))method_end, METH_FASTCALL | METH_KEYWORDS,
     "See Recorder.end."},
    {"put", method_put, METH_O, "See Recorder.put."},
    {"here", method_here, METH_NOARGS, "See Recorder.here."},
    {"cpu", method_cpu, METH_NOARGS, "See Recorder.cpu."},
    {"next_id", method_next_id, METH_NOARGS, "An id that no span has."},
    {"ask_clock", clock_set, METH_VARARGS, "Take the time from these two functions."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef core_members[] = {
    {"opened", T_OBJECT_EX, offsetof(Core, opened), 0, NULL},
    {"_by_text", T_OBJECT_EX, offsetof(Core, by_text), 0, NULL},
    {"closed", T_BOOL, offsetof(Core, closed), 0, NULL},
    {"woken", T_BOOL, offsetof(Core, woken), 0, NULL},
    {"plain_cpu", T_BOOL, offsetof(Core, plain_cpu), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot core_slots[] = {
    {Py_tp_doc, "The part of a recorder that is C."},
    {Py_tp_new, core_new},
    {Py_tp_dealloc, core_dealloc},
    {Py_tp_traverse, core_traverse},
    {Py_tp_clear, core_clear},
    {Py_tp_methods, core_methods},
    {Py_tp_members, core_members},
    {0, NULL},
};

PyType_Spec core_spec = {"opscope.record._native.Core", sizeof(Core), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, core_slots};
