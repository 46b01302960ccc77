/* What is current: a frame in the ContextVar, or beside it while garbage is collected. */
#include "native.h"

/* Before CPython 3.12 garbage is collected anywhere, also where the program sets a variable of its
 * own. Setting ours there, in a finalizer that enters a call, would take away what CPython is about
 * to use. So what is current on that thread is kept here meanwhile. */
static unsigned long collector = 0; /* the thread that collects garbage now; 0: none */
static PyObject *beside = NULL;

int is_beside(void) { return collector && collector == PyThread_get_thread_ident(); }

int frame_held(PyObject **frame) {
    if (is_beside()) {
        Py_XINCREF(beside);
        *frame = beside;
        return 0;
    }
    if (PyContextVar_Get(state.current, NULL, frame)) return -1;
    if (*frame == Py_None) Py_CLEAR(*frame);
    return 0;
}

int make_current(PyObject *frame) {
    if (is_beside()) {
        PyObject *kept = frame == Py_None ? NULL : frame;
        Py_XINCREF(kept);
        Py_XSETREF(beside, kept);
        return 0;
    }
#if PY_VERSION_HEX < 0x030C0000
    /* Nor may it be collected in the middle of setting ours, whoever watches collections. */
    int collects = PyGC_Disable();
#endif
    PyObject *token = PyContextVar_Set(state.current, frame ? frame : Py_None);
#if PY_VERSION_HEX < 0x030C0000
    if (collects) PyGC_Enable();
#endif
    if (!token) return -1;
    Py_DECREF(token);
    return 0;
}

int plainly_open(PyObject *held, PyObject *recorder) {
    const Frame *frame = (Frame *)held;
    return is_frame(held) && frame->recorder == recorder && !frame->closed && !frame->yielding &&
           !frame->aside;
}

int frame_current(PyObject *recorder, PyObject **frame) {
    if (frame_held(frame)) return -1;
    if (!PyDict_GET_SIZE(state.adopted)) {
        if (!*frame) return 0;
        if (plainly_open(*frame, recorder)) return 0;
    }
    Py_XDECREF(*frame);
    *frame = PyObject_CallOneArg(state.find, recorder);
    if (!*frame) return -1;
    if (*frame == Py_None) Py_CLEAR(*frame);
    return 0;
}

static PyObject *current(PyObject *module, PyObject *recorder) {
    PyObject *frame;
    (void)module;
    if (frame_current(recorder, &frame)) return NULL;
    if (frame) return frame;
    Py_RETURN_NONE;
}

static PyObject *owner(PyObject *module, PyObject *recorder) {
    PyObject *frame;
    (void)module;
    if (frame_current(recorder, &frame)) return NULL;
    PyObject *call = PyLong_FromLongLong(frame && is_frame(frame) ? ((Frame *)frame)->call : 0);
    Py_XDECREF(frame);
    return call;
}

static PyObject *held(PyObject *module, PyObject *nothing) {
    PyObject *frame;
    (void)module;
    (void)nothing;
    if (frame_held(&frame)) return NULL;
    if (frame) return frame;
    Py_RETURN_NONE;
}

static PyObject *push(PyObject *module, PyObject *frame) {
    (void)module;
    if (make_current(frame)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *collecting(PyObject *module, PyObject *begins) {
    PyObject *frame;
    (void)module;
    int on = PyObject_IsTrue(begins);
    if (on < 0) return NULL;
    if (on && !collector) {
        if (frame_held(&frame)) return NULL;
        Py_XSETREF(beside, frame);
        collector = PyThread_get_thread_ident();
    } else if (!on && is_beside()) {
        collector = 0;
        Py_CLEAR(beside);
    }
    Py_RETURN_NONE;
}

static PyObject *keeps_beside(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    return PyBool_FromLong(is_beside());
}

PyMethodDef current_functions[] = {
    {"current", current, METH_O, "See scope.current."},
    {"owner", owner, METH_O, "See scope.owner."},
    {"held", held, METH_NOARGS, "See scope.held."},
    {"push", push, METH_O, "See scope.push."},
    {"collecting", collecting, METH_O, "See scope.collecting."},
    {"keeps_beside", keeps_beside, METH_NOARGS, "See scope.keeps_beside."},
    {NULL, NULL, 0, NULL},
};
