/* Tables and lists of flatbuffers, every place checked. */
#include "import/tflite/flatbuffer.h"

#include <string.h>

static bool has(qn_flat *flat, size_t at, size_t size)
{
    if (at <= flat->size && size <= flat->size - at)
        return true;
    if (!flat->fault)
        flat->fault = "something points out of the file";
    return false;
}

/* Numbers are little-endian; the sign fills the upper bytes. */
static int64_t number(const uint8_t *bytes, size_t size)
{
    uint64_t value = size < 8 && bytes[size - 1] & 0x80 ? UINT64_MAX << (8 * size) : 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return (int64_t)value;
}

static float real(const uint8_t *bytes)
{
    const uint32_t bits = (uint32_t)number(bytes, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A place is followed by how far behind it something stands. */
static bool follow(size_t *at, qn_flat *flat)
{
    if (!has(flat, *at, 4))
        return false;
    *at += (uint32_t)number(flat->data + *at, 4);
    return has(flat, *at, 4);
}

/* A table begins with how far in front of it the places of its fields stand: their bytes, the
 * table's bytes, and two bytes for each field. */
static qn_flat_table table_at(qn_flat *flat, size_t at)
{
    const qn_flat_table absent = {.flat = NULL};
    if (!has(flat, at, 4))
        return absent;
    const int64_t places = (int64_t)at - number(flat->data + at, 4);
    if (places < 0 || !has(flat, (size_t)places, 4))
        return absent;
    const unsigned bytes = (uint16_t)number(flat->data + places, 2);
    if (bytes < 4 || !has(flat, (size_t)places, bytes))
        return absent;
    return (qn_flat_table){flat, at, (size_t)places + 4, (bytes - 4) / 2};
}

qn_flat_table qn_flat_root(qn_flat *flat)
{
    size_t at = 0;
    return follow(&at, flat) ? table_at(flat, at) : (qn_flat_table){.flat = NULL};
}

/* Where the field's `size` bytes stand; 0: it is absent. */
static size_t place_of(const qn_flat_table *table, unsigned field, size_t size)
{
    if (!table->flat || field >= table->n_places)
        return 0;
    const uint8_t *place = table->flat->data + table->places + 2 * (size_t)field;
    const size_t offset = (uint16_t)number(place, 2);
    return offset && has(table->flat, table->at + offset, size) ? table->at + offset : 0;
}

bool qn_flat_has(const qn_flat_table *table, unsigned field)
{
    return place_of(table, field, 1) != 0;
}

int64_t qn_flat_int(const qn_flat_table *table, unsigned field, size_t size, int64_t otherwise)
{
    const size_t at = place_of(table, field, size);
    return at ? number(table->flat->data + at, size) : otherwise;
}

float qn_flat_real(const qn_flat_table *table, unsigned field, float otherwise)
{
    const size_t at = place_of(table, field, 4);
    return at ? real(table->flat->data + at) : otherwise;
}

qn_flat_table qn_flat_child(const qn_flat_table *table, unsigned field)
{
    size_t at = place_of(table, field, 4);
    return at && follow(&at, table->flat) ? table_at(table->flat, at)
                                          : (qn_flat_table){.flat = NULL};
}

qn_flat_list qn_flat_items(const qn_flat_table *table, unsigned field, size_t item_size)
{
    const qn_flat_list none = {.item_size = item_size};
    size_t bytes, at = place_of(table, field, 4);
    if (!at || !follow(&at, table->flat))
        return none;
    const size_t count = (uint32_t)number(table->flat->data + at, 4);
    if (!qn_mul_size(&bytes, count, item_size) || !has(table->flat, at + 4, bytes))
        return none;
    return (qn_flat_list){table->flat, table->flat->data + at + 4, count, item_size};
}

qn_string qn_flat_text(const qn_flat_table *table, unsigned field)
{
    const qn_flat_list bytes = qn_flat_items(table, field, 1);
    return (qn_string){(const char *)bytes.data, bytes.count};
}

int64_t qn_flat_item_int(const qn_flat_list *list, size_t i)
{
    return number(list->data + i * list->item_size, list->item_size);
}

float qn_flat_item_real(const qn_flat_list *list, size_t i)
{
    return real(list->data + i * list->item_size);
}

qn_flat_table qn_flat_item(const qn_flat_list *list, size_t i)
{
    size_t at = (size_t)(list->data - list->flat->data) + i * list->item_size;
    return follow(&at, list->flat) ? table_at(list->flat, at) : (qn_flat_table){.flat = NULL};
}
