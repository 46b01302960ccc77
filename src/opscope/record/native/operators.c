/* The hooks of an engine's operators: pushed, started, finished. `hosts.engine` is the reference.
 *
 * Fields of a task are read where its class keeps its slots, which is several times as fast as
 * asking by name. */
#include "native.h"

typedef struct {
    PyObject_HEAD
    PyObject *recorder; /* a Core */
    PyObject *watch;    /* the dict of the module that says who records now */
    PyTypeObject *task_type;
    Py_ssize_t kind, name, note, error; /* where they are in a task */
    long chore, hidden;
    PyObject *broken; /* called with (moment, hook, exception) when a hook fails */
} Operators;

static PyObject **slot(PyObject *task, Py_ssize_t offset) {
    return (PyObject **)((char *)task + offset);
}

static int find_slot(PyTypeObject *type, const char *name, Py_ssize_t *offset) {
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    if (!found) return -1;
    int good = Py_IS_TYPE(found, &PyMemberDescr_Type) &&
               PyType_IsSubtype(type, ((PyMemberDescrObject *)found)->d_common.d_type) &&
               ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX;
    if (good)
        *offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s is not a slot of %s", name, type->tp_name);
    Py_DECREF(found);
    return good ? 0 : -1;
}

static int is_task(Operators *self, PyObject *task) {
    if (PyObject_TypeCheck(task, self->task_type)) return 1;
    PyErr_Format(PyExc_TypeError, "not a task of the engine: %s", Py_TYPE(task)->tp_name);
    return 0;
}

/* A hook failed: it is told and switched off, and the program goes on, unless it was interrupted. */
static PyObject *result(Operators *self, const char *moment, int failed) {
    if (!failed) Py_RETURN_NONE;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    PyObject *hook = PyObject_GetAttrString((PyObject *)self, moment);
    PyObject *told = hook ? PyObject_CallFunction(self->broken, "sOO", moment, hook, error) : NULL;
    Py_XDECREF(hook);
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return told;
}

static int push(Operators *self, PyObject *task) {
    if (!is_task(self, task)) return -1;
    PyObject *recording = PyDict_GetItemWithError(self->watch, state.recorder);
    if (recording != self->recorder) return PyErr_Occurred() ? -1 : 0;
    PyObject *kind_object = *slot(task, self->kind), *frame = NULL;
    long kind = kind_object ? PyLong_AsLong(kind_object) : 0;
    if (kind == -1 && PyErr_Occurred()) return -1;
    if (kind == self->hidden) return 0;
    Core *core = (Core *)self->recorder;
    Buffer *buffer = core_here(core);
    if (!buffer) return -1;
    Span span = {.lane = buffer->lane, .submitted_lane = buffer->lane, .cpu_ns = -1,
                 .kind = kind == self->chore ? KIND_RUNTIME : KIND_OP};
    if (kind != self->chore) {
        if (frame_current(self->recorder, &frame)) return -1;
        if (frame && is_frame(frame)) {
            span.owner = ((Frame *)frame)->call;
            span.phase = ((Frame *)frame)->phase_number;
        }
        Py_XDECREF(frame);
    }
    Row *row = row_new();
    if (!row) return -1;
    row->span = span;
    row->serial = core->serial;
    int failed = core_now(core, &row->span.submitted_ns);
    if (failed)
        Py_DECREF(row);
    else
        Py_XSETREF(*slot(task, self->note), (PyObject *)row);
    return failed;
}

static int name_of(Core *core, PyObject *text, int32_t *name) {
    PyObject *known = NULL, *made = NULL;
    int64_t number;
    if (!text) {
        PyErr_SetString(PyExc_AttributeError, "name");
        return -1;
    }
    if (core->by_text && PyDict_Check(core->by_text)) {
        known = PyDict_GetItemWithError(core->by_text, text);
        if (!known && PyErr_Occurred()) return -1;
    }
    if (!known) known = made = PyObject_CallMethodOneArg((PyObject *)core, state.name, text);
    int failed = !known || to_int64(known, &number);
    Py_XDECREF(made);
    if (!failed) *name = (int32_t)number;
    return failed ? -1 : 0;
}

/* The row of a task that was pushed in this recording: what an earlier one left is not ours. */
static Row *row_of(Operators *self, PyObject *task) {
    PyObject *note = *slot(task, self->note);
    if (!note || !Py_IS_TYPE(note, state.Row)) return NULL;
    return ((Row *)note)->serial == ((Core *)self->recorder)->serial ? (Row *)note : NULL;
}

static int start(Operators *self, PyObject *task) {
    Core *core = (Core *)self->recorder;
    PyObject *frame;
    if (!is_task(self, task)) return -1;
    Row *row = row_of(self, task);
    if (!row) return 0;
    Py_INCREF(row);
    int failed = -1;
    row->span.id = ++core->last_id;
    PyObject *name = *slot(task, self->name);
    Py_XINCREF(name);
    if (name_of(core, name, &row->span.name)) goto done;
    Buffer *buffer = core_here(core);
    if (!buffer) goto done;
    row->span.lane = buffer->lane;
    if (frame_held(&frame)) goto done;
    if (frame) { /* inside a call on this very thread: its own CPU time needs this one's */
        Py_DECREF(frame);
        if (core_cpu(core, &row->span.cpu_ns)) goto done;
    }
    failed = core_open(core, row) || core_now(core, &row->span.start_ns) ? -1 : 0;
done:
    Py_XDECREF(name);
    Py_DECREF(row);
    return failed;
}

/* CPU time of the thread on which the row began: an asynchronous operator may end on any. */
static int cpu_at_home(Core *core, const Row *row, int64_t *cpu) {
    Buffer *buffer = core_here(core);
    if (!buffer) return -1;
    if (buffer->lane == row->span.lane) return core_cpu(core, cpu);
    PyObject *said = PyObject_CallMethod((PyObject *)core, "cpu_on", "i", (int)row->span.lane);
    int failed = !said || to_int64(said, cpu);
    Py_XDECREF(said);
    return failed ? -1 : 0;
}

static int finish(Operators *self, PyObject *task) {
    Core *core = (Core *)self->recorder;
    int64_t now, cpu;
    if (!is_task(self, task)) return -1;
    Row *row = row_of(self, task);
    if (!row || !row->span.start_ns) return 0;
    Py_INCREF(row);
    int failed = core_now(core, &now);
    if (!failed && row->span.cpu_ns >= 0) {
        failed = cpu_at_home(core, row, &cpu);
        int64_t before = row->span.cpu_ns;
        if (!failed) row->span.cpu_ns = cpu < 0 ? -1 : cpu > before ? cpu - before : 0;
    }
    if (!failed) {
        PyObject *error = *slot(task, self->error);
        int flags = error && error != Py_None ? FAILED : 0;
        failed = core_end(core, row->span.id, flags, row->span.cpu_ns, now);
    }
    Py_DECREF(row);
    return failed;
}

static PyObject *pushed(PyObject *self, PyObject *task) {
    return result((Operators *)self, "pushed", push((Operators *)self, task));
}

static PyObject *started(PyObject *self, PyObject *task) {
    return result((Operators *)self, "started", start((Operators *)self, task));
}

static PyObject *finished(PyObject *self, PyObject *task) {
    return result((Operators *)self, "finished", finish((Operators *)self, task));
}

static PyObject *row(PyObject *self, PyObject *task) {
    if (!is_task((Operators *)self, task)) return NULL;
    PyObject *found = (PyObject *)row_of((Operators *)self, task);
    return Py_NewRef(found ? found : Py_None);
}

static PyObject *operators_new(PyTypeObject *type, PyObject *args, PyObject *by_name) {
    static char *names[] = {"recorder", "watch", "task", "chore", "hidden", "broken", NULL};
    PyObject *recorder, *watch, *task, *broken;
    long chore, hidden;
    if (!PyArg_ParseTupleAndKeywords(args, by_name, "OO!O!llO:Operators", names, &recorder,
                                     &PyDict_Type, &watch, &PyType_Type, &task, &chore, &hidden,
                                     &broken))
        return NULL;
    if (!is_core(recorder) || !((Core *)recorder)->opened || !state.current) {
        PyErr_SetString(PyExc_TypeError, "Operators needs a native recorder");
        return NULL;
    }
    Operators *self = (Operators *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->recorder = Py_NewRef(recorder);
    self->watch = Py_NewRef(watch);
    self->task_type = (PyTypeObject *)Py_NewRef(task);
    self->broken = Py_NewRef(broken);
    self->chore = chore;
    self->hidden = hidden;
    if (find_slot(self->task_type, "kind", &self->kind) ||
        find_slot(self->task_type, "name", &self->name) ||
        find_slot(self->task_type, "note", &self->note) ||
        find_slot(self->task_type, "error", &self->error))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int operators_traverse(PyObject *self, visitproc visit, void *arg) {
    Operators *operators = (Operators *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(operators->recorder);
    Py_VISIT(operators->watch);
    Py_VISIT(operators->task_type);
    Py_VISIT(operators->broken);
    return 0;
}

static void operators_dealloc(PyObject *self) {
    Operators *operators = (Operators *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(operators->recorder);
    Py_XDECREF(operators->watch);
    Py_XDECREF(operators->task_type);
    Py_XDECREF(operators->broken);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef operators_methods[] = {
    {"pushed", pushed, METH_O, "An operator was pushed: its owner is the current call."},
    {"started", started, METH_O, "It runs now, on this thread."},
    {"finished", finished, METH_O, "It has ended."},
    {"row", row, METH_O, "What `pushed` of this recording left with the task, or None."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot operators_slots[] = {
    {Py_tp_doc, "The hooks of the operators of an engine; each handles its own faults."},
    {Py_tp_new, operators_new},
    {Py_tp_dealloc, operators_dealloc},
    {Py_tp_traverse, operators_traverse},
    {Py_tp_methods, operators_methods},
    {0, NULL},
};

PyType_Spec operators_spec = {"opscope.record._native.Operators", sizeof(Operators), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, operators_slots};
