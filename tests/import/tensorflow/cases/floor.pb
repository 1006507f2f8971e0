
;
x0Placeholder*
dtype0*
shape:

FloorFloorx0*
T0
$
IdentityIdentityFloor*
T0