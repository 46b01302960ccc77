/* A span in the making: 64 bytes that Python sees as a list of twelve integers. */
#include "native.h"

typedef struct {
    const char *name;
    size_t offset;
    int size;
} Field;

#define FIELD(name) {#name, offsetof(Span, name), (int)sizeof(((Span *)0)->name)}
static const Field fields[FIELDS] = {
    FIELD(id), FIELD(owner), FIELD(name), FIELD(kind), FIELD(phase), FIELD(flags),
    FIELD(lane), FIELD(submitted_lane), FIELD(start_ns), FIELD(end_ns), FIELD(submitted_ns),
    FIELD(cpu_ns),
};

int to_int64(PyObject *number, int64_t *found) {
    long long value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) return -1;
    *found = value;
    return 0;
}

static int64_t get_field(const Span *span, Py_ssize_t index) {
    const char *at = (const char *)span + fields[index].offset;
    switch (fields[index].size) {
        case 1: return *(const int8_t *)at;
        case 2: return *(const int16_t *)at;
        case 4: return *(const int32_t *)at;
        default: return *(const int64_t *)at;
    }
}

static int set_field(Span *span, Py_ssize_t index, PyObject *number) {
    int64_t value;
    char *at = (char *)span + fields[index].offset;
    int bits = fields[index].size * 8;
    if (to_int64(number, &value)) return -1;
    if (bits < 64 && (value < -((int64_t)1 << (bits - 1)) || value >= (int64_t)1 << (bits - 1))) {
        PyErr_Format(PyExc_OverflowError, "%s of a span does not fit %d bits", fields[index].name,
                     bits);
        return -1;
    }
    switch (fields[index].size) {
        case 1: *(int8_t *)at = (int8_t)value; break;
        case 2: *(int16_t *)at = (int16_t)value; break;
        case 4: *(int32_t *)at = (int32_t)value; break;
        default: *(int64_t *)at = value;
    }
    return 0;
}

int span_from(PyObject *given, Span *span) {
    if (Py_IS_TYPE(given, state.Row)) {
        *span = ((Row *)given)->span;
        return 0;
    }
    if (!PyTuple_Check(given) && !PyList_Check(given)) {
        PyErr_Format(PyExc_TypeError, "a span is a tuple or list of %d integers", FIELDS);
        return -1;
    }
    for (Py_ssize_t index = 0; index < FIELDS; index++) {
        /* Asked each time: turning a number into C may run Python, which may shorten a list. */
        if (PySequence_Fast_GET_SIZE(given) != FIELDS) {
            PyErr_Format(PyExc_ValueError, "a span has %d fields", FIELDS);
            return -1;
        }
        PyObject *number = PySequence_Fast_GET_ITEM(given, index);
        Py_INCREF(number);
        int failed = set_field(span, index, number);
        Py_DECREF(number);
        if (failed) return -1;
    }
    return 0;
}

PyObject *span_tuple(const Span *span) {
    PyObject *made = PyTuple_New(FIELDS);
    for (Py_ssize_t index = 0; made && index < FIELDS; index++) {
        PyObject *number = PyLong_FromLongLong(get_field(span, index));
        if (!number) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, index, number);
    }
    return made;
}

Row *row_new(void) {
    Row *row = PyObject_New(Row, state.Row); /* the caller fills in all of the span */
    if (row) row->serial = 0;
    return row;
}

static void row_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *row_from(PyTypeObject *type, PyObject *args, PyObject *by_name) {
    PyObject *given;
    Span span;
    (void)type;
    if (by_name && PyDict_GET_SIZE(by_name)) {
        PyErr_SetString(PyExc_TypeError, "Row takes no arguments by name");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O:Row", &given) || span_from(given, &span)) return NULL;
    Row *row = row_new();
    if (row) row->span = span;
    return (PyObject *)row;
}

static Py_ssize_t row_length(PyObject *self) {
    (void)self;
    return FIELDS;
}

static int in_range(Py_ssize_t index) {
    if (index >= 0 && index < FIELDS) return 1;
    PyErr_SetString(PyExc_IndexError, "a span has twelve fields");
    return 0;
}

static PyObject *row_item(PyObject *self, Py_ssize_t index) {
    if (!in_range(index)) return NULL;
    return PyLong_FromLongLong(get_field(&((Row *)self)->span, index));
}

static int row_set_item(PyObject *self, Py_ssize_t index, PyObject *number) {
    if (!number) {
        PyErr_SetString(PyExc_TypeError, "a field of a span cannot be deleted");
        return -1;
    }
    return in_range(index) ? set_field(&((Row *)self)->span, index, number) : -1;
}

static PyObject *row_subscript(PyObject *self, PyObject *key) {
    if (PySlice_Check(key)) {
        PyObject *whole = span_tuple(&((Row *)self)->span);
        PyObject *part = whole ? PyObject_GetItem(whole, key) : NULL;
        Py_XDECREF(whole);
        return part;
    }
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) return NULL;
    return row_item(self, index < 0 ? index + FIELDS : index);
}

static int row_set_subscript(PyObject *self, PyObject *key, PyObject *number) {
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) return -1;
    return row_set_item(self, index < 0 ? index + FIELDS : index, number);
}

static PyObject *row_repr(PyObject *self) {
    PyObject *fields_of = span_tuple(&((Row *)self)->span);
    PyObject *text = fields_of ? PyUnicode_FromFormat("Row(%R)", fields_of) : NULL;
    Py_XDECREF(fields_of);
    return text;
}

static PyType_Slot row_slots[] = {
    {Py_tp_doc, "A span in the making: a list of twelve integers, the fields of model.SPAN."},
    {Py_tp_new, row_from},
    {Py_tp_dealloc, row_dealloc},
    {Py_tp_repr, row_repr},
    {Py_sq_length, row_length},
    {Py_sq_item, row_item},
    {Py_sq_ass_item, row_set_item},
    {Py_mp_length, row_length},
    {Py_mp_subscript, row_subscript},
    {Py_mp_ass_subscript, row_set_subscript},
    {0, NULL},
};

PyType_Spec row_spec = {"opscope.record._native.Row", sizeof(Row), 0, Py_TPFLAGS_DEFAULT, row_slots};
