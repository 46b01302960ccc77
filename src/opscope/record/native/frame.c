/* The frame of an open call; entering and leaving calls. What is rare goes to `scope` in Python. */
#include "native.h"

static PyObject *none_or(PyObject *thing) {
    PyObject *found = thing ? thing : Py_None;
    Py_INCREF(found);
    return found;
}

static int set_phase(Frame *frame, PyObject *phase) {
    int64_t number;
    if (to_int64(phase, &number)) return -1;
    if (number < 0 || number > 127) {
        PyErr_SetString(PyExc_ValueError, "no such phase");
        return -1;
    }
    Py_INCREF(phase);
    Py_XSETREF(frame->phase, phase);
    frame->phase_number = (int8_t)number;
    return 0;
}

static Frame *frame_new(PyObject *recorder, PyObject *outer, int64_t call, PyObject *phase) {
    Frame *frame = PyObject_GC_New(Frame, state.Frame);
    if (!frame) return NULL;
    memset((char *)frame + sizeof(PyObject), 0, sizeof(Frame) - sizeof(PyObject));
    frame->lane = -1;
    frame->call = call;
    Py_INCREF(recorder);
    frame->recorder = recorder;
    if (outer && outer != Py_None) {
        Py_INCREF(outer);
        frame->outer = outer;
    }
    PyObject_GC_Track(frame);
    if (set_phase(frame, phase)) Py_CLEAR(frame);
    return frame;
}

static PyObject *frame_make(PyTypeObject *type, PyObject *args, PyObject *by_name) {
    static char *names[] = {"recorder", "outer", "call", "phase", NULL};
    PyObject *recorder, *outer, *phase;
    long long call;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, by_name, "OOLO:Frame", names, &recorder, &outer, &call,
                                     &phase))
        return NULL;
    return (PyObject *)frame_new(recorder, outer, call, phase);
}

static int frame_traverse(PyObject *self, visitproc visit, void *arg) {
    Frame *frame = (Frame *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(frame->recorder);
    Py_VISIT(frame->outer);
    Py_VISIT(frame->phase);
    Py_VISIT(frame->around);
    Py_VISIT(frame->mark);
    Py_VISIT(frame->yielding);
    return 0;
}

static int frame_clear(PyObject *self) {
    Frame *frame = (Frame *)self;
    /* Not `recorder`: methods rely on it; the recorder breaks such a cycle. */
    Py_CLEAR(frame->outer);
    Py_CLEAR(frame->around);
    Py_CLEAR(frame->mark);
    Py_CLEAR(frame->yielding);
    return 0;
}

static void frame_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, frame_dealloc) /* a chain of frames may be long */
    frame_clear(self);
    Py_CLEAR(((Frame *)self)->recorder);
    Py_CLEAR(((Frame *)self)->phase);
    PyObject_GC_Del(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

/* --- attributes ---------------------------------------------------------------------------------- */

static PyObject *get_outer(PyObject *self, void *at) {
    return none_or(*(PyObject **)((char *)self + (size_t)at));
}

static int set_outer(PyObject *self, PyObject *value, void *at) {
    PyObject **place = (PyObject **)((char *)self + (size_t)at);
    PyObject *fresh = value == Py_None ? NULL : value; /* deleting is setting to None */
    Py_XINCREF(fresh);
    Py_XSETREF(*place, fresh);
    return 0;
}

static PyObject *get_around(PyObject *self, void *nothing) {
    (void)nothing;
    PyObject *found = ((Frame *)self)->around ? ((Frame *)self)->around : state.no_frames;
    Py_INCREF(found);
    return found;
}

static PyObject *get_phase(PyObject *self, void *nothing) {
    (void)nothing;
    return none_or(((Frame *)self)->phase);
}

static int set_phase_of(PyObject *self, PyObject *value, void *nothing) {
    (void)nothing;
    if (value) return set_phase((Frame *)self, value);
    PyErr_SetString(PyExc_TypeError, "a frame has a phase");
    return -1;
}

static PyObject *get_waiting(PyObject *self, void *nothing) {
    (void)nothing;
    if (!state.waiting || !PySet_GET_SIZE(state.waiting)) Py_RETURN_FALSE;
    PyObject *key = Py_BuildValue("kO", PyThread_get_thread_ident(), self);
    if (!key) return NULL;
    int found = PySet_Contains(state.waiting, key);
    Py_DECREF(key);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

#define PLACE(name) (void *)offsetof(Frame, name)
static PyGetSetDef frame_getters[] = {
    {"outer", get_outer, set_outer, NULL, PLACE(outer)},
    {"mark", get_outer, set_outer, NULL, PLACE(mark)},
    {"yielding", get_outer, set_outer, NULL, PLACE(yielding)},
    {"around", get_around, set_outer, NULL, PLACE(around)},
    {"phase", get_phase, set_phase_of, NULL, NULL},
    {"waiting", get_waiting, NULL, "See scope.Frame.waiting.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef frame_members[] = {
    {"recorder", T_OBJECT_EX, offsetof(Frame, recorder), READONLY, NULL},
    {"call", T_LONGLONG, offsetof(Frame, call), 0, NULL},
    {"task", T_LONGLONG, offsetof(Frame, task), 0, NULL},
    {"cpu", T_LONGLONG, offsetof(Frame, cpu), 0, NULL},
    {"aside", T_ULONG, offsetof(Frame, aside), 0, NULL},
    {"lane", T_INT, offsetof(Frame, lane), 0, NULL},
    {"closed", T_BOOL, offsetof(Frame, closed), 0, NULL},
    {"left", T_BOOL, offsetof(Frame, left), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot frame_slots[] = {
    {Py_tp_doc, "One open call, as the thread that runs it knows it."},
    {Py_tp_new, frame_make},
    {Py_tp_dealloc, frame_dealloc},
    {Py_tp_traverse, frame_traverse},
    {Py_tp_clear, frame_clear},
    {Py_tp_members, frame_members},
    {Py_tp_getset, frame_getters},
    {0, NULL},
};

PyType_Spec frame_spec = {"opscope.record._native.Frame", sizeof(Frame), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, frame_slots};

/* --- enter and leave ----------------------------------------------------------------------------- */

/* What a new frame lies in, and its owner where nobody said: the order of looks is that of
 * `scope.enter`. Fills `outer` with a new reference or NULL. */
static int find_outer(Core *core, PyObject **outer, int64_t *under) {
    PyObject *recorder = (PyObject *)core;
    if (frame_held(outer)) return -1;
    if (!PyDict_GET_SIZE(state.adopted)) {
        if (!*outer) {
            if (*under < 0) *under = 0;
            return 0;
        }
        if (plainly_open(*outer, recorder) && !core->closed) {
            if (*under < 0) *under = ((Frame *)*outer)->call;
            return 0;
        }
    }
    Py_XSETREF(*outer, PyObject_CallNoArgs(state.link));
    if (!*outer) return -1;
    if (*under < 0) {
        PyObject *above = PyObject_CallFunctionObjArgs(state.open, *outer, recorder, NULL);
        if (!above) return -1;
        *under = is_frame(above) ? ((Frame *)above)->call : 0;
        Py_DECREF(above);
    }
    if (*outer == Py_None) Py_CLEAR(*outer);
    return 0;
}

static PyObject *enter(PyObject *module, PyObject *const *args, Py_ssize_t count,
                       PyObject *by_name) {
    static PyObject *names[7];
    static const char *texts[7] = {"recorder", "name", "phase", "flags",
                                   "submitted_ns", "submitted_lane", "under"};
    PyObject *given[7] = {NULL}, *outer = NULL;
    int64_t name, flags = 0, submitted_ns = 0, submitted_lane = -1, under = -1, cpu, id = 0;
    (void)module;
    if (count < 1 || !is_core(args[0])) return PyObject_Vectorcall(state.enter, args, count, by_name);
    for (int index = 0; !names[6] && index < 7; index++)
        if (!(names[index] = PyUnicode_InternFromString(texts[index]))) return NULL;
    if (take_arguments("enter", args, count, by_name, names, 7, 2, given)) return NULL;
    if (to_int64(given[1], &name) || (given[3] && to_int64(given[3], &flags)) ||
        (given[4] && to_int64(given[4], &submitted_ns)) ||
        (given[5] && to_int64(given[5], &submitted_lane)) || (given[6] && to_int64(given[6], &under)))
        return NULL;
    Core *core = (Core *)args[0];
    Frame *frame = NULL;
    if (find_outer(core, &outer, &under)) goto failed;
    frame = frame_new((PyObject *)core, outer, 0, given[2] ? given[2] : state.zero);
    if (!frame) goto failed;
    Buffer *buffer = core_here(core);
    if (!buffer) goto failed;
    frame->lane = buffer->lane;
    if (core_cpu(core, &cpu)) goto failed;
    frame->cpu = cpu;
    if (!core->closed) {
        Span span = {.owner = under, .name = (int32_t)name, .kind = KIND_CALL,
                     .phase = frame->phase_number, .flags = (int16_t)flags, .lane = frame->lane,
                     .submitted_lane = submitted_lane < 0 ? frame->lane : (int32_t)submitted_lane,
                     .submitted_ns = submitted_ns, .cpu_ns = -1};
        if (span.name != name || span.flags != flags ||
            (submitted_lane >= 0 && span.submitted_lane != submitted_lane)) {
            PyErr_SetString(PyExc_OverflowError, "enter() was given a number that does not fit a span");
            goto failed;
        }
        if (core_begin(core, &span, &id)) goto failed;
    }
    frame->call = id;
    if (make_current((PyObject *)frame)) goto failed;
    Py_XDECREF(outer);
    return (PyObject *)frame;
failed:
    Py_XDECREF(outer);
    Py_XDECREF(frame);
    return NULL;
}

/* Takes the frame off the chain; keeps an error that is set. */
static int unlink_frame(Frame *frame) {
    PyObject *kind, *error, *trace, *top;
    PyErr_Fetch(&kind, &error, &trace);
    int failed = frame_held(&top);
    if (is_beside()) frame->closed = 1; /* the ContextVar may hold it all the same */
    if (!failed && top == (PyObject *)frame && !PyDict_GET_SIZE(state.adopted)) {
        failed = make_current(frame->outer);
    } else if (!failed) {
        PyObject *done = PyObject_CallOneArg(state.pull, (PyObject *)frame);
        Py_XDECREF(done);
        failed = done ? 0 : -1;
    }
    Py_XDECREF(top);
    if (failed) {
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return -1;
    }
    PyErr_Restore(kind, error, trace);
    return kind ? -1 : 0;
}

static PyObject *leave(PyObject *module, PyObject *const *args, Py_ssize_t count,
                       PyObject *by_name) {
    static PyObject *names[4];
    static const char *texts[4] = {"frame", "flags", "cpu_ns", "end_ns"};
    PyObject *given[4] = {NULL};
    int64_t flags = 0, cpu = -1, end_ns = 0;
    (void)module;
    if (count < 1 || !is_frame(args[0]) || !is_core(((Frame *)args[0])->recorder))
        return PyObject_Vectorcall(state.leave, args, count, by_name);
    for (int index = 0; !names[3] && index < 4; index++)
        if (!(names[index] = PyUnicode_InternFromString(texts[index]))) return NULL;
    if (take_arguments("leave", args, count, by_name, names, 4, 1, given)) return NULL;
    if (given[2] == Py_None) given[2] = NULL;
    Frame *frame = (Frame *)given[0];
    if ((given[1] && to_int64(given[1], &flags)) || (given[2] && to_int64(given[2], &cpu)) ||
        (given[3] && to_int64(given[3], &end_ns))) {
        frame->left = frame->claimed = 1;
        unlink_frame(frame); /* or whatever comes next on this thread would lie in it */
        return NULL;
    }
    Core *core = (Core *)frame->recorder;
    frame->left = 1;
    int ours = !core->closed && !frame->claimed;
    frame->claimed |= ours;
    if (ours && !end_ns) core_now(core, &end_ns);
    if (ours && !given[2] && !PyErr_Occurred()) {
        Buffer *buffer = core_here(core);
        if (buffer && buffer->lane == frame->lane && frame->cpu >= 0 && !core_cpu(core, &cpu))
            cpu = cpu > frame->cpu ? cpu - frame->cpu : 0;
    }
    if (unlink_frame(frame)) return NULL;
    if (ours && core_end(core, frame->call, flags, cpu, end_ns)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *claim(PyObject *module, PyObject *frame) {
    (void)module;
    if (!is_frame(frame)) {
        PyErr_SetString(PyExc_TypeError, "claim takes a frame");
        return NULL;
    }
    int mine = !((Frame *)frame)->claimed;
    ((Frame *)frame)->claimed = 1;
    return PyBool_FromLong(mine);
}

PyMethodDef frame_functions[] = {
    {"enter", (PyCFunction)(void (*)(void))enter, METH_FASTCALL | METH_KEYWORDS, "See scope.enter."},
    {"leave", (PyCFunction)(void (*)(void))leave, METH_FASTCALL | METH_KEYWORDS, "See scope.leave."},
    {"claim", claim, METH_O, "See scope.claim."},
    {NULL, NULL, 0, NULL},
};
