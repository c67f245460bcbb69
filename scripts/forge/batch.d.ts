import { batch } from './types';
export = batch;
