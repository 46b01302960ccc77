/* What one thread has recorded and nobody has written yet. */
#include "native.h"

uint64_t buffers_gone = 0;

int buffer_full(const Buffer *buffer) { return buffer->waiting >= buffer->bound; }

/* Takes the row, or counts it as dropped; -1 never: losing a row must not hurt the program. */
int buffer_put(Buffer *buffer, const Span *span) {
    if (!buffer_full(buffer)) {
        if (!buffer->last || buffer->to == CHUNK) {
            Chunk *fresh = buffer->spare;
            buffer->spare = NULL;
            if (!fresh) fresh = malloc(sizeof(Chunk));
            if (!fresh) goto dropped;
            fresh->next = NULL;
            if (buffer->last) {
                buffer->last->next = fresh;
            } else {
                buffer->first = fresh;
                buffer->from = 0;
            }
            buffer->last = fresh;
            buffer->to = 0;
        }
        buffer->last->rows[buffer->to++] = *span;
        buffer->waiting++;
        return 0;
    }
dropped:
    if (!buffer->drop_from || span->start_ns < buffer->drop_from)
        buffer->drop_from = span->start_ns;
    buffer->drop_to = span->end_ns;
    buffer->dropped++;
    return 0;
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *by_name) {
    static char *names[] = {"lane", "bound", "wake_at", "ident", "thread", NULL};
    int lane;
    Py_ssize_t bound, wake_at;
    unsigned long ident;
    PyObject *thread;
    if (!PyArg_ParseTupleAndKeywords(args, by_name, "innkO:Buffer", names, &lane, &bound, &wake_at,
                                     &ident, &thread))
        return NULL;
    Buffer *buffer = (Buffer *)type->tp_alloc(type, 0);
    if (!buffer) return NULL;
    buffer->lane = lane;
    buffer->bound = bound;
    buffer->wake_at = wake_at;
    buffer->ident = ident;
    Py_INCREF(thread);
    buffer->thread = thread;
    return (PyObject *)buffer;
}

static void buffer_dealloc(PyObject *self) {
    Buffer *buffer = (Buffer *)self;
    PyTypeObject *type = Py_TYPE(self);
    buffers_gone++;
    PyObject_GC_UnTrack(self);
    for (Chunk *chunk = buffer->first, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(buffer->spare);
    Py_XDECREF(buffer->thread);
    type->tp_free(self);
    Py_DECREF(type);
}

static int buffer_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Buffer *)self)->thread);
    return 0;
}

static int buffer_clear(PyObject *self) {
    Py_CLEAR(((Buffer *)self)->thread);
    return 0;
}

static PyObject *buffer_waiting(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyLong_FromSsize_t(((Buffer *)self)->waiting);
}

/* The oldest rows, as they stand in the file; at most as many as there are. */
static PyObject *buffer_take(PyObject *self, PyObject *number) {
    Buffer *buffer = (Buffer *)self;
    Py_ssize_t count = PyLong_AsSsize_t(number);
    if (count == -1 && PyErr_Occurred()) return NULL;
    if (count < 0) count = 0;
    if (count > buffer->waiting) count = buffer->waiting;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(Span));
    if (!bytes) return NULL;
    char *at = PyBytes_AS_STRING(bytes);
    buffer->waiting -= count;
    while (count) {
        Chunk *chunk = buffer->first;
        Py_ssize_t end = chunk == buffer->last ? buffer->to : CHUNK;
        Py_ssize_t some = end - buffer->from < count ? end - buffer->from : count;
        memcpy(at, &chunk->rows[buffer->from], (size_t)some * sizeof(Span));
        at += some * (Py_ssize_t)sizeof(Span);
        buffer->from += some;
        count -= some;
        if (chunk == buffer->last) {
            if (buffer->from == buffer->to) buffer->from = buffer->to = 0;
        } else if (buffer->from == CHUNK) {
            buffer->first = chunk->next;
            buffer->from = 0;
            free(buffer->spare);
            buffer->spare = chunk;
        }
    }
    return bytes;
}

static PyObject *buffer_rows(PyObject *self, void *closure) {
    Buffer *buffer = (Buffer *)self;
    (void)closure;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, buffer->waiting * (Py_ssize_t)sizeof(Span));
    if (!bytes) return NULL;
    /* Copied first: making tuples may run Python, which may record. */
    Span *spans = (Span *)PyBytes_AS_STRING(bytes);
    Py_ssize_t count = 0;
    Py_ssize_t from = buffer->from;
    for (Chunk *chunk = buffer->first; chunk; chunk = chunk->next, from = 0) {
        Py_ssize_t end = chunk == buffer->last ? buffer->to : CHUNK;
        memcpy(spans + count, &chunk->rows[from], (size_t)(end - from) * sizeof(Span));
        count += end - from;
    }
    PyObject *list = PyList_New(count);
    for (Py_ssize_t index = 0; list && index < count; index++) {
        PyObject *row = span_tuple(spans + index);
        if (row)
            PyList_SET_ITEM(list, index, row);
        else
            Py_CLEAR(list);
    }
    Py_DECREF(bytes);
    return list;
}

static PyMethodDef buffer_methods[] = {
    {"waiting", buffer_waiting, METH_NOARGS, "How many rows nobody has taken yet."},
    {"take", buffer_take, METH_O, "The oldest rows as packed bytes; at most as many as there are."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef buffer_members[] = {
    {"lane", T_INT, offsetof(Buffer, lane), READONLY, NULL},
    {"ident", T_ULONG, offsetof(Buffer, ident), READONLY, NULL},
    {"thread", T_OBJECT_EX, offsetof(Buffer, thread), READONLY, NULL},
    {"bound", T_PYSSIZET, offsetof(Buffer, bound), READONLY, NULL},
    {"dropped", T_LONGLONG, offsetof(Buffer, dropped), 0, NULL},
    {"reported", T_LONGLONG, offsetof(Buffer, reported), 0, NULL},
    {"drop_from", T_LONGLONG, offsetof(Buffer, drop_from), 0, NULL},
    {"drop_to", T_LONGLONG, offsetof(Buffer, drop_to), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef buffer_getters[] = {
    {"rows", buffer_rows, NULL, "A copy of the rows as tuples.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, "What one thread has recorded and nobody has written yet."},
    {Py_tp_new, buffer_new},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_traverse, buffer_traverse},
    {Py_tp_clear, buffer_clear},
    {Py_tp_methods, buffer_methods},
    {Py_tp_members, buffer_members},
    {Py_tp_getset, buffer_getters},
    {0, NULL},
};

PyType_Spec buffer_spec = {"opscope.record._native.Buffer", sizeof(Buffer), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, buffer_slots};
